"""The contract of a probe, and the scene in which it reads."""

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
class Scene:
    """One round as the attacker has it before anybody answers.

    Args:
        round: its number.
        broadcast: the weights from which everybody starts.
        build_model: gives the architecture.
        classes: how many labels the task has.
        held_out: auxiliary examples of every class that no virtual client learns from.
        auxiliary: all auxiliary examples, `held_out` among them.
        recipe: how clients train; None = unknown.
        seed: of whatever a probe draws: the same for every client, virtual or real.
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
    """Reads a few numbers off what clients sent, after which the weights may be dropped.

    A concrete probe is a final frozen dataclass at the top of a module, so that it can be sent
    to worker processes: its fields are its settings, and its repr is its name on the shelf.
    Virtual and real clients are read by the same probe in the same scene.
    """

    @abstractmethod
    def read(self, scene: Scene, deltas: Sequence[Weights]) -> Float[Tensor, "clients ..."]:
        """Numbers of each client, in the order of `deltas` (local minus broadcast weights)."""


def scene_seed(seed: Seed, round: int) -> Seed:
    """Of what probes draw in a round, below the bank's seed."""
    return seed.child("scene", round)
