"""FedAvg: the server adds the mean update to the global model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

from annotated_types import Gt

from overheard.core.algorithm.algorithm import (
    Algorithm,
    MeanKind,
    ReceivedUpdate,
    ServerState,
    mean_factors,
    move,
)
from overheard.core.algorithm.lazy_weights import scaled
from overheard.core.messages import Weights


@final
@dataclass(frozen=True)
class FedAvg(Algorithm):
    """The server adds the mean update, times its rate, to the global model.

    w(t+1) = w(t) + rate * mean of the updates (McMahan et al. 2017, Algorithm 1, at rate 1).

    Leak: it is the reference for the other algorithms. The server reads every update. Clients
    read two consecutive broadcasts, and so the mean update of each round.

    Args:
        rate: the server's learning rate.
        mean: whether updates are weighted by their numbers of examples, or all alike.

    """

    name: ClassVar[str] = "fed_avg"
    source: ClassVar[str] = "McMahan et al. 2017 (arXiv 1602.05629), Algorithm 1"

    rate: Annotated[float, Gt(0)] = 1.0
    mean: MeanKind = "examples"

    @property
    def adds_mean(self) -> bool:
        """Return whether the rate is 1."""
        return self.rate == 1

    def factors(self, received: Sequence[ReceivedUpdate]) -> tuple[float, ...]:
        """Return the weights of the mean."""
        return mean_factors(received, self.mean)

    def next_state(
        self,
        number: int,
        state: ServerState,
        delta: Weights,
        received: Sequence[ReceivedUpdate],
    ) -> ServerState:
        """Return the state after one step along the mean update."""
        return replace(state, weights=move(state.weights, delta, self.rate))

    def mean_of_round(self, change: Weights, before: Weights | None) -> Weights:
        """Return the change of the global model divided by the rate."""
        return scaled(change, 1 / self.rate)
