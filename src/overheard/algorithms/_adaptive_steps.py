"""The step that FedAdam, FedYogi and FedAdagrad share: a rate of its own for each weight."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

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

NextSquare = Callable[[Tensor, Tensor], Tensor]
"""Returns v(t) from v(t-1) and the square of the mean update of round t."""


class AdaptiveAlgorithm(Algorithm):
    """An algorithm whose server scales each weight by past updates."""

    hidden_mean: ClassVar[str] = HIDDEN_MEAN
    has_memory: ClassVar[bool] = True
    mean: MeanKind
    """Whether updates are weighted by their numbers of examples, or all alike."""

    @property
    def adds_mean(self) -> bool:
        """Return false: the server does not add the mean update itself."""
        return False

    def factors(self, received: Sequence[ReceivedUpdate]) -> tuple[float, ...]:
        """Return the weights of the mean."""
        return mean_factors(received, self.mean)


def adaptive_step(
    state: ServerState,
    delta: Weights,
    *,
    rate: float,
    decay: float,
    tau: float,
    first_square: float,
    next_square: NextSquare,
) -> ServerState:
    """Return the state after a step of Reddi et al. 2021, Algorithm 2, in float64.

    m(t) = decay * m(t-1) + (1 - decay) * delta; w(t+1) = w(t) + rate * m(t) / (sqrt(v(t)) +
    tau), from m = 0.

    Args:
        state: the state before.
        delta: the mean update of the round.
        rate: the server's learning rate.
        decay: beta_1 of the paper.
        tau: added to the root, so that small squares do not make large steps.
        first_square: v before the first round; tau ** 2 in the paper, 0 in Flower.
        next_square: the rule of the algorithm for v.

    """
    old_mean, old_square = state.memory.get(MEAN), state.memory.get(SQUARE)
    means, squares, steps = {}, {}, {}
    for name, tensor in delta.items():
        part = tensor.double()
        mean = part * (1 - decay)
        means[name] = mean if old_mean is None else mean + decay * old_mean[name]
        first = part.new_full(part.shape, first_square)
        before = first if old_square is None else old_square[name]
        squares[name] = next_square(before, part.square())
        steps[name] = means[name] / (squares[name].sqrt() + tau)
    moved = move(state.weights, steps, rate)
    return replace(state, weights=moved, memory={MEAN: means, SQUARE: squares})
