"""Who learns in one round, from what, and what comes of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed


@dataclass(frozen=True, slots=True)
class Member:
    """One learner: a name, on which its draws hang, and its rows of the shared pool."""

    name: str
    rows: Int[Tensor, " examples"]

    def __post_init__(self) -> None:
        """Refuse a member that has nothing to learn from."""
        if not len(self.rows):
            raise ValueError(f"{self.name} has no examples: leave it out of the cohort")


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Members who start from the same weights, and draw from the same seed.

    Args:
        start: weights from which each of them starts, whose type all computing takes; never
            changed.
        pool: examples of all of them together.
        members: who learns, each from its rows of the pool.
        seed: root of every draw.

    """

    start: Weights
    pool: Examples
    members: Sequence[Member]
    seed: Seed


@dataclass(frozen=True, slots=True)
class Trained:
    """What a member learned.

    Args:
        member: who.
        delta: local minus start weights, on the cpu.
        loss: mean training loss over the last epoch, each batch before its step.

    """

    member: Member
    delta: Weights
    loss: float


@dataclass(frozen=True, slots=True)
class Lesson:
    """All that the members of a group share: where they start, what they learn from, how.

    Args:
        build_model: gives the architecture; its own weights are not used.
        start: weights from which every member starts; never changed.
        pool: examples of all members together.
        recipe: how each of them trains.
        seed: root of the order of batches.
        round: which round of the federation this is.
        device: where to compute.

    """

    build_model: BuildModel
    start: Weights
    pool: Examples
    recipe: Recipe
    seed: Seed
    round: int
    device: torch.device
