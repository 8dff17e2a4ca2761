"""FedAvgM: the server moves with momentum."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

from annotated_types import Ge, Gt, Lt

from overheard.core.algorithm.algorithm import (
    Algorithm,
    MeanKind,
    ReceivedUpdate,
    ServerState,
    mean_factors,
    move,
)
from overheard.core.algorithm.lazy_weights import LinearCombination, scaled
from overheard.core.messages import Weights

VELOCITY = "velocity"
"""Name of the velocity in the server's memory."""


@final
@dataclass(frozen=True)
class FedAvgM(Algorithm):
    """The server moves along a sum of mean updates that decays by `momentum` per round.

    v(t) = momentum * v(t-1) + mean of the updates; w(t+1) = w(t) + rate * v(t), from v = 0
    (Hsu et al. 2019, Section 4.3). It is the step of Flower's `FedAvgM`.

    Leak: as much as FedAvg to the server, which reads every update. Clients that know rate and
    momentum compute the mean update of a round from three consecutive broadcasts. Clients that
    do not know them see a mixture of all rounds so far.

    Args:
        rate: the server's learning rate.
        momentum: factor of the velocity of the round before, in [0, 1).
        mean: whether updates are weighted by their numbers of examples, or all alike.

    """

    name: ClassVar[str] = "fed_avg_m"
    source: ClassVar[str] = "Hsu et al. 2019 (arXiv 1909.06335), Section 4.3"
    has_memory: ClassVar[bool] = True

    rate: Annotated[float, Gt(0)] = 1.0
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.9
    mean: MeanKind = "examples"

    @property
    def adds_mean(self) -> bool:
        """Return false: the server does not add the mean update itself."""
        return False

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
        """Return the state after one step along the velocity."""
        before = state.memory.get(VELOCITY)
        velocity = {
            name: part.double()
            if before is None
            else self.momentum * before[name] + part.double()
            for name, part in delta.items()
        }
        moved = move(state.weights, velocity, self.rate)
        return replace(state, weights=moved, memory={VELOCITY: velocity})

    def mean_of_round(self, change: Weights, before: Weights | None) -> Weights:
        """Return v(t) - momentum * v(t-1), as the changes of the model are rate * v."""
        if before is None:
            return scaled(change, 1 / self.rate)
        return LinearCombination((change, before), (1 / self.rate, -self.momentum / self.rate))
