"""The base class of probes, which compute a few numbers from each client's update."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed


@dataclass(frozen=True, slots=True)
class ProbeContext:
    """What the attacker knows of a round before any update.

    Args:
        round: its number.
        broadcast: the weights from which all clients start.
        build_model: builds the architecture.
        classes: the number of labels of the task.
        held_out: auxiliary examples of every class on which no virtual client trains.
        auxiliary: all auxiliary examples, including `held_out`.
        recipe: how clients train; None = unknown.
        seed: the seed of all random choices of a probe; the same for all clients, virtual or
            real.
        device: where to compute.

    """

    round: int
    broadcast: Weights
    build_model: BuildModel
    classes: int
    held_out: Examples
    auxiliary: Examples
    recipe: Recipe | None
    seed: Seed
    device: str


class Probe(ABC):
    """A function that computes a few numbers, the reading, from each client's update.

    The updates, which are much larger, can then be dropped.

    A concrete probe is a final frozen dataclass at the top of a module, so that it can be sent
    to worker processes. Its fields are its settings, and its repr is part of its cache key.
    The same probe, with the same context, is applied to virtual and real clients.
    """

    @abstractmethod
    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients ..."]:
        """Return the reading of each client; `deltas` are local minus broadcast weights."""


def probe_seed(seed: Seed, round: int) -> Seed:
    """Return the seed of probes in a round, from the seed of the simulation."""
    return seed.child("scene", round)
