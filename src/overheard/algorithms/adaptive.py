"""FedAdam, FedYogi and FedAdagrad: the server has a rate of its own for each weight."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Annotated, ClassVar, final

from annotated_types import Ge, Gt, Lt
from torch import Tensor

from overheard.core.algorithm.algorithm import (
    Algorithm,
    MeanKind,
    ReceivedUpdate,
    ServerState,
    mean_factors,
    move,
)
from overheard.core.messages import Weights

MEAN = "mean"
"""Name of the decaying mean of mean updates in the server's memory."""

SQUARE = "square"
"""Name of the squares of mean updates, accumulated, in the server's memory."""

HIDDEN_MEAN = (
    "the mean update of a round: this algorithm scales each weight by past updates, so that "
    "broadcasts do not tell the size of the mean update"
)
"""Why broadcasts do not give the mean update."""


class AdaptiveAlgorithm(Algorithm, ABC):
    """An algorithm whose server scales each weight by past updates.

    m(t) = beta_1 m(t-1) + (1 - beta_1) D for the mean update D; w(t+1) = w(t) + rate * m(t) /
    (sqrt(v(t)) + tau), from m = 0, in float64 (Reddi et al. 2021, Algorithm 2).
    """

    source: ClassVar[str] = "Reddi et al. 2021 (arXiv 2003.00295), Algorithm 2"
    hidden_mean: ClassVar[str] = HIDDEN_MEAN
    has_memory: ClassVar[bool] = True

    rate: float
    """The server's learning rate."""

    tau: float
    """Added to the root, so that small squares do not make large steps."""

    first_square: float
    """v before the first round; tau ** 2 in the paper, 0 in Flower."""

    mean: MeanKind
    """Whether updates are weighted by their numbers of examples, or all alike."""

    @abstractmethod
    def next_square(self, before: Tensor, square: Tensor) -> Tensor:
        """Return v(t) from v(t-1) and the square of the mean update of round t."""

    @abstractmethod
    def rate_and_decay(self, number: int) -> tuple[float, float]:
        """Return the learning rate in a round counted from 0, and beta_1."""

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
        """Return the state after one step along the mean update."""
        rate, decay = self.rate_and_decay(number)
        old_mean, old_square = state.memory.get(MEAN), state.memory.get(SQUARE)
        means, squares, steps = {}, {}, {}
        for name, tensor in delta.items():
            part = tensor.double()
            mean = part * (1 - decay)
            means[name] = mean if old_mean is None else mean + decay * old_mean[name]
            first = part.new_full(part.shape, self.first_square)
            before = first if old_square is None else old_square[name]
            squares[name] = self.next_square(before, part.square())
            steps[name] = means[name] / (squares[name].sqrt() + self.tau)
        moved = move(state.weights, steps, rate)
        return replace(state, weights=moved, memory={MEAN: means, SQUARE: squares})


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

    rate: Annotated[float, Gt(0)] = 0.1
    beta_1: Annotated[float, Ge(0), Lt(1)] = 0.9
    beta_2: Annotated[float, Ge(0), Lt(1)] = 0.99
    tau: Annotated[float, Gt(0)] = 1e-3
    bias_correction: bool = True
    first_square: Annotated[float, Ge(0)] = 0.0
    mean: MeanKind = "examples"

    def next_square(self, before: Tensor, square: Tensor) -> Tensor:
        """Return a decaying mean."""
        return self.beta_2 * before + (1 - self.beta_2) * square

    def rate_and_decay(self, number: int) -> tuple[float, float]:
        """Return the rate, corrected if asked for, and the decay."""
        # Flower counts rounds from 1 and raises the decays to the next round.
        power = number + 2
        corrected = sqrt(1 - self.beta_2**power) / (1 - self.beta_1**power)
        return self.rate * (corrected if self.bias_correction else 1.0), self.beta_1


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

    rate: Annotated[float, Gt(0)] = 0.01
    beta_1: Annotated[float, Ge(0), Lt(1)] = 0.9
    beta_2: Annotated[float, Ge(0), Lt(1)] = 0.99
    tau: Annotated[float, Gt(0)] = 1e-3
    first_square: Annotated[float, Ge(0)] = 0.0
    mean: MeanKind = "examples"

    def next_square(self, before: Tensor, square: Tensor) -> Tensor:
        """Return squares that move towards the new one, whatever the distance."""
        return before - (1 - self.beta_2) * square * (before - square).sign()

    def rate_and_decay(self, number: int) -> tuple[float, float]:
        """Return the settings."""
        return self.rate, self.beta_1


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

    rate: Annotated[float, Gt(0)] = 0.1
    tau: Annotated[float, Gt(0)] = 1e-3
    first_square: Annotated[float, Ge(0)] = 0.0
    mean: MeanKind = "examples"

    def next_square(self, before: Tensor, square: Tensor) -> Tensor:
        """Return the sum of all squares."""
        return before + square

    def rate_and_decay(self, number: int) -> tuple[float, float]:
        """Return the rate, and no decay."""
        return self.rate, 0.0
