"""The clients that train in one round, their shared settings and their results."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.algorithm.crafted_gradients import CraftedRows
from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed


@dataclass(frozen=True, slots=True)
class ClientTask:
    """A client to be trained.

    Args:
        name: seeds its draws.
        rows: its rows of the pool.
        epochs: its passes over them; None = those of the recipe.
        correction: added to the gradient of the loss in every step (SCAFFOLD); None = nothing.
        crafted: which of its examples are canaries with crafted gradients; None = none.

    """

    name: str
    rows: Int[Tensor, " examples"]
    epochs: int | None = None
    correction: Weights | None = None
    crafted: CraftedRows | None = None

    def __post_init__(self) -> None:
        """Refuse a client without examples or epochs."""
        if not len(self.rows):
            raise ValueError(f"{self.name} has no examples: leave it out of the cohort")
        if self.epochs is not None and self.epochs < 1:
            raise ValueError(f"{self.name} must train for 1 epoch or more, got {self.epochs}")

    def epochs_in(self, recipe: Recipe) -> int:
        """Return its number of epochs under a recipe."""
        return recipe.epochs if self.epochs is None else self.epochs

    def steps_in(self, recipe: Recipe) -> int:
        """Return its number of optimizer steps under a recipe."""
        return recipe.steps(len(self.rows), self.epochs)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingGroup:
    """Clients that start from the same weights and draw from the same seed.

    Args:
        start: weights from which each client starts; their dtype is used throughout. They are
            never changed.
        pool: examples of all clients.
        clients: the clients to train, each on its rows of the pool.
        seed: root of every random draw.

    """

    start: Weights
    pool: Examples
    clients: Sequence[ClientTask]
    seed: Seed


@dataclass(frozen=True, slots=True)
class ClientResult:
    """Result of the local training of one client.

    Args:
        client: the client.
        delta: local minus start weights, on the CPU.
        loss: mean training loss over the last epoch, each batch before its step.

    """

    client: ClientTask
    delta: Weights
    loss: float


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """What the clients of a group share in training.

    Args:
        build_model: builds the architecture; its weights are not used.
        start: weights from which every client starts; never changed.
        pool: examples of all clients.
        recipe: how each client trains.
        seed: root of the order of batches.
        round: number of the round.
        device: where to compute.
        has_corrections: whether the gradients of any client are corrected.

    """

    build_model: BuildModel
    start: Weights
    pool: Examples
    recipe: Recipe
    seed: Seed
    round: int
    device: torch.device
    has_corrections: bool = False
