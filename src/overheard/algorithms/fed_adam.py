"""FedAdam: the server steps as Adam does, along the mean update."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, final

from torch import Tensor

from overheard.algorithms._adaptive_steps import AdaptiveAlgorithm, adaptive_step
from overheard.algorithms._settings import check_at_least_zero, check_decay, check_positive
from overheard.core.algorithm.algorithm import MeanKind, ReceivedUpdate, ServerState
from overheard.core.messages import Weights


@final
@dataclass(frozen=True)
class FedAdam(AdaptiveAlgorithm):
    """The server divides a decaying mean of mean updates by the root of their mean square.

    m = beta_1 m + (1 - beta_1) D and v = beta_2 v + (1 - beta_2) D^2 for the mean update D;
    w = w + rate * m / (sqrt(v) + tau) (Reddi et al. 2021, Algorithm 2). The defaults are those
    of Flower's `FedAdam`: v begins at 0, and the rate of round t, counted from 1, is multiplied
    by sqrt(1 - beta_2^(t+1)) / (1 - beta_1^(t+1)). For the paper's step set `bias_correction`
    to false and `first_square` to tau^2.

    Leak: as much as FedAvg to the server, which reads every update. Clients learn less: each
    weight moves by about the rate, whatever the size of the mean update. Attacks of clients on
    the mean update are refused.

    Args:
        rate: the server's learning rate.
        beta_1: decay of the mean, in [0, 1).
        beta_2: decay of the mean square, in [0, 1).
        tau: added to the root of the mean square.
        bias_correction: whether the rate is corrected as in Flower.
        first_square: the mean square before the first round.
        mean: whether updates are weighted by their numbers of examples, or all alike.

    """

    name: ClassVar[str] = "fed_adam"
    source: ClassVar[str] = "Reddi et al. 2021 (arXiv 2003.00295), Algorithm 2"

    rate: float = 0.1
    beta_1: float = 0.9
    beta_2: float = 0.99
    tau: float = 1e-3
    bias_correction: bool = True
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
        """Return the state after one step of Adam."""

        def next_square(before: Tensor, square: Tensor) -> Tensor:
            return self.beta_2 * before + (1 - self.beta_2) * square

        return adaptive_step(
            state,
            delta,
            rate=self.rate * self._correction(number),
            decay=self.beta_1,
            tau=self.tau,
            first_square=self.first_square,
            next_square=next_square,
        )

    def _correction(self, number: int) -> float:
        """Return the factor of the rate in a round counted from 0."""
        # Flower counts rounds from 1 and raises the decays to the next round.
        power = number + 2
        corrected = sqrt(1 - self.beta_2**power) / (1 - self.beta_1**power)
        return corrected if self.bias_correction else 1.0
