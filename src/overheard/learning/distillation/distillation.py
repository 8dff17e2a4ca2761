"""The interface of a method by which clients share distilled data instead of weights."""

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
from overheard.core.settings import Settings
from overheard.learning.distillation.moments import AdamMoments
from overheard.learning.distillation.synthetic import SyntheticExamples
from overheard.learning.training_job import ClientTask

MissingClassMode = Literal["mask", "average"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class DistillationResult:
    """Result of one round of distillation.

    Args:
        examples: synthetic examples of each client.
        losses: distillation loss of each client before its last step.
        moments: optimizer state of each client for its next round.

    """

    examples: SyntheticExamples
    losses: Float[Tensor, " clients"]
    moments: AdamMoments


class Distiller(ABC):
    """A network and a method that distil the data of clients."""

    @abstractmethod
    def train(self, examples: SyntheticExamples) -> list[Weights]:
        """Train on each client's set, and return the weights, on the CPU.

        They depend only on the initial weights and the set, so any reader can compute them.
        """

    @abstractmethod
    def distil(
        self,
        shared: SyntheticExamples,
        pool: Examples,
        clients: Sequence[ClientTask],
        moments: AdamMoments,
        *,
        round: int,
        rate_scale: float,
        seed: Seed,
    ) -> DistillationResult:
        """Distil for one round, every client starting from the same set.

        Args:
            shared: set from which all clients start.
            pool: examples of all clients.
            clients: the clients, each with its rows of the pool.
            moments: optimizer state of each client.
            round: number of the round, which seeds the draws.
            rate_scale: factor by which the rates of the distillation are multiplied.
            seed: root of the draws.

        """

    @abstractmethod
    def needed_bytes(self, examples: int, clients: int) -> int:
        """Estimate the memory for networks, with this many synthetic examples per client."""


class Distillation(Settings, ABC):
    """How clients distil their data, and how a model is trained on the shared examples.

    All clients start from the same weights and the same synthetic examples. In a round each
    client adapts the examples to its own data. The server averages the clients' examples,
    labels and rates elementwise. The model is trained on the set of the last round.

    A client without examples of a class cannot adapt the synthetic ones. With `lacking` "mask"
    the mean leaves it out for that class, which shows the server the missing class. With
    "average" it counts like any other client.

    A concrete method is a final frozen dataclass: its fields are its settings and include
    these.

    Args:
        samples: synthetic examples of each class.
        first_rate: initial learning rate of each synthetic example.
        halve_every: number of rounds after which the rates of the distillation are halved
            each time; 0 = never.
        lacking: what happens to a class of which a client has no example.

    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Source of the method: authors, year, section or algorithm."""

    samples: int
    first_rate: float
    halve_every: int
    lacking: MissingClassMode

    @abstractmethod
    def build_distiller(
        self, build_model: BuildModel, start: Weights, device: torch.device | str = "cpu"
    ) -> Distiller:
        """Build a distiller for such a network, with these initial weights.

        Raises:
            PlanError: if the network does not support distillation.

        """

    def rate_scale(self, round: int) -> float:
        """Return the factor of the rates of the distillation in a round."""
        return 0.5 ** (round // self.halve_every) if self.halve_every else 1.0
