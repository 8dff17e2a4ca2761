"""The contract of a way to distil: what travels in place of weights, and what is made of it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.cohort import Member
from overheard.learning.distillation.moments import Moments
from overheard.learning.distillation.synthetic import Synthetic

Lacking = Literal["mask", "average"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Distilled:
    """What the members of a round came to.

    Args:
        examples: of each member.
        losses: of each member before its last step: of what its own examples ask for.
        moments: what is remembered of each for its next round.

    """

    examples: Synthetic
    losses: Float[Tensor, " members"]
    moments: Moments


class Distiller(ABC):
    """A network that a way to distil looks through."""

    @abstractmethod
    def train(self, examples: Synthetic) -> list[Weights]:
        """The weights that each member's set teaches, on the cpu.

        They follow from the first weights and the set alone: whoever reads it can train them.
        """

    @abstractmethod
    def distil(
        self,
        shared: Synthetic,
        pool: Examples,
        members: Sequence[Member],
        moments: Moments,
        *,
        round: int,
        scale: float,
        seed: Seed,
    ) -> Distilled:
        """Distil one round: every member goes on from the same set.

        Args:
            shared: what all start from.
            pool: examples of all members together.
            members: who distils, each from its rows of the pool.
            moments: what is remembered of each.
            round: which one it is; on it the draws hang.
            scale: by what the rates of the distillation are multiplied.
            seed: root of the draws.

        """

    @abstractmethod
    def bytes_kept(self, examples: int, members: int) -> int:
        """Memory for networks on the way through so many synthetic examples of each member."""


class Distillation(ABC):
    """How clients distil what they hold, and how a model is learned from what they share.

    All clients start from the same weights and the same synthetic examples. In a round each
    client changes the examples after its own data; the server takes the mean of all clients'
    examples, labels and rates, one by one. The model is what the last round's set teaches.

    A client that lacks a class has nothing to say of its examples: with `lacking` "mask" it
    says so, and they are the mean of the other clients' (which tells the server what it lacks);
    with "average" it counts all the same, as if nobody lacked any.

    A concrete one is a final frozen dataclass: its fields are its settings, and these among
    them.

    Args:
        samples: synthetic examples of each class.
        first_rate: the learning rate of each at the start.
        halve_every: after how many rounds each the rates of the distillation are halved; 0 =
            never.
        lacking: what is done where a client lacks a class.

    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Where it was published: authors, year, section or algorithm."""

    samples: int
    first_rate: float
    halve_every: int
    lacking: Lacking

    @abstractmethod
    def distiller(
        self, build_model: BuildModel, start: Weights, device: torch.device | str = "cpu"
    ) -> Distiller:
        """What distils so through such a network, from these first weights.

        Raises:
            PlanError: if nothing can be distilled through it.

        """

    def scale(self, round: int) -> float:
        """By what the rates of the distillation are multiplied in a round."""
        return 0.5 ** (round // self.halve_every) if self.halve_every else 1.0
