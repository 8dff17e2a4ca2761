"""FedAdagrad: the server steps as Adagrad does, along the mean update."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from overheard.algorithms._adaptive_steps import AdaptiveAlgorithm, adaptive_step
from overheard.algorithms._settings import check_at_least_zero, check_positive
from overheard.core.algorithm.algorithm import MeanKind, ReceivedUpdate, ServerState
from overheard.core.messages import Weights


@final
@dataclass(frozen=True)
class FedAdagrad(AdaptiveAlgorithm):
    """The server divides the mean update by the root of the sum of all squares so far.

    v = v + D^2 for the mean update D; w = w + rate * D / (sqrt(v) + tau) (Reddi et al. 2021,
    Algorithm 2, with beta_1 = 0). It is the step of Flower's `FedAdagrad`, where v begins at 0;
    in the paper it begins at tau^2.

    Leak: as much as FedAvg to the server, which reads every update. Clients learn less, as with
    FedAdam: the size of the mean update is lost. Attacks of clients on it are refused.

    Args:
        rate: the server's learning rate.
        tau: added to the root of the sum.
        first_square: the sum before the first round.
        mean: whether updates are weighted by their numbers of examples, or all alike.

    """

    name: ClassVar[str] = "fed_adagrad"
    source: ClassVar[str] = "Reddi et al. 2021 (arXiv 2003.00295), Algorithm 2"

    rate: float = 0.1
    tau: float = 1e-3
    first_square: float = 0.0
    mean: MeanKind = "examples"

    def __post_init__(self) -> None:
        """Check the ranges of the settings."""
        check_positive("rate", self.rate)
        check_positive("tau", self.tau)
        check_at_least_zero("first_square", self.first_square)

    def next_state(
        self,
        number: int,
        state: ServerState,
        delta: Weights,
        received: Sequence[ReceivedUpdate],
    ) -> ServerState:
        """Return the state after one step of Adagrad."""

        def next_square(before: Tensor, square: Tensor) -> Tensor:
            return before + square

        return adaptive_step(
            state,
            delta,
            rate=self.rate,
            decay=0.0,
            tau=self.tau,
            first_square=self.first_square,
            next_square=next_square,
        )
