"""FedYogi: the server steps as Yogi does, along the mean update."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from overheard.algorithms._adaptive_steps import AdaptiveAlgorithm, adaptive_step
from overheard.algorithms._settings import check_at_least_zero, check_decay, check_positive
from overheard.core.algorithm.algorithm import MeanKind, ReceivedUpdate, ServerState
from overheard.core.messages import Weights


@final
@dataclass(frozen=True)
class FedYogi(AdaptiveAlgorithm):
    """The server divides a decaying mean of mean updates by the root of slow squares.

    m = beta_1 m + (1 - beta_1) D and v = v - (1 - beta_2) D^2 sign(v - D^2) for the mean update
    D; w = w + rate * m / (sqrt(v) + tau) (Reddi et al. 2021, Algorithm 2). It is the step of
    Flower's `FedYogi`, where v begins at 0; in the paper it begins at tau^2.

    Leak: as much as FedAvg to the server, which reads every update. Clients learn less, as with
    FedAdam: the size of the mean update is lost. Attacks of clients on it are refused.

    Args:
        rate: the server's learning rate.
        beta_1: decay of the mean, in [0, 1).
        beta_2: v changes by (1 - beta_2) D^2 in a round, in [0, 1).
        tau: added to the root of v.
        first_square: v before the first round.
        mean: whether updates are weighted by their numbers of examples, or all alike.

    """

    name: ClassVar[str] = "fed_yogi"
    source: ClassVar[str] = "Reddi et al. 2021 (arXiv 2003.00295), Algorithm 2"

    rate: float = 0.01
    beta_1: float = 0.9
    beta_2: float = 0.99
    tau: float = 1e-3
    first_square: float = 0.0
    mean: MeanKind = "examples"

    def __post_init__(self) -> None:
        """Check the ranges of the settings."""
        check_positive("rate", self.rate)
        check_positive("tau", self.tau)
        check_decay("beta_1", self.beta_1)
        check_decay("beta_2", self.beta_2)
        check_at_least_zero("first_square", self.first_square)

    def next_state(
        self,
        number: int,
        state: ServerState,
        delta: Weights,
        received: Sequence[ReceivedUpdate],
    ) -> ServerState:
        """Return the state after one step of Yogi."""

        def next_square(before: Tensor, square: Tensor) -> Tensor:
            return before - (1 - self.beta_2) * square * (before - square).sign()

        return adaptive_step(
            state,
            delta,
            rate=self.rate,
            decay=self.beta_1,
            tau=self.tau,
            first_square=self.first_square,
            next_square=next_square,
        )
