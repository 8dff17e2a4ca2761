"""Steps of adaptive servers, which are not linear in the mean, on a smaller sample.

The server moves by rate * m / (sqrt(v) + tau), where m and v follow from the means of all
rounds so far. So change * sqrt(v) = rate * m - tau * change, which is linear in rate and tau.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from overheard.algorithms.adaptive import (
    MEAN,
    SQUARE,
    AdaptiveAlgorithm,
    FedAdagrad,
    FedAdam,
    FedYogi,
)
from overheard.consistency.evidence import Matrix, least_squares
from overheard.consistency.readings import OTHER_READINGS, STATED, ReadingCase
from overheard.core.algorithm.algorithm import Algorithm, ServerState
from overheard.core.messages import Weights

DEFAULTS: tuple[AdaptiveAlgorithm, ...] = (
    FedAdam(rate=1.0),
    FedAdam(rate=1.0, bias_correction=False),
    FedYogi(rate=1.0),
    FedAdagrad(rate=1.0),
)
"""The algorithms that are tried with their default decays, which are Flower's."""

CASES = tuple(
    case
    for case in (STATED, *OTHER_READINGS)
    # A gradient makes the same step the other way, which a negative rate shows. If models were
    # saved after the aggregation, the change of the first round is unknown.
    if case.sign == 1 and not (case.more and case.target == "c1")
)
"""The readings of which the steps are computed."""

MEANS = ("examples", "equal")

MOST_NUMBERS = 2**11
"""Most numbers of the smaller sample, on which the steps of many algorithms are taken."""

SQUARED, MOVED, CHANGED = 0, 1, 2
"""Places of change * sqrt(v), of m and of the change in the products of a track."""


@final
@dataclass(frozen=True, slots=True)
class Track:
    """One algorithm on one reading of the replies.

    Args:
        algorithm: the algorithm, with the rate 1.
        case: the reading.
        mean: the weights of the mean.

    """

    algorithm: AdaptiveAlgorithm
    case: ReadingCase
    mean: str


@final
@dataclass(frozen=True, slots=True)
class AdaptiveEvidence:
    """The steps of all tracks in one round, on two halves of a smaller sample.

    Args:
        round: number of the round.
        fit: by track, the products of change * sqrt(v), m and the change, on the half on which
            rate and tau are fitted.
        test: the same on the other half.
        rounding: the square of the error that rounded broadcasts allow, on that half.

    """

    round: int
    fit: Mapping[Track, Matrix]
    test: Mapping[Track, Matrix]
    rounding: float


@final
class AdaptiveTracks:
    """Follows the memories of adaptive servers from the first round on.

    Args:
        stated: the stated algorithm, tried with its decays; None = none is stated.

    """

    def __init__(self, stated: Algorithm | None) -> None:
        own = (replace(stated, rate=1.0),) if isinstance(stated, _KINDS) else ()
        self._algorithms = tuple(dict.fromkeys((*own, *DEFAULTS)))
        self._memory = dict[tuple[AdaptiveAlgorithm, int], Mapping[str, Weights]]()
        self._numbers = 0
        self._stopped = set[int]()

    def stop(self) -> None:
        """Give up, as a round that the memories depend on is unknown."""
        self._stopped = {0, 1}

    def advance(
        self, number: int, vectors: Mapping[str, Tensor], rounding: float
    ) -> AdaptiveEvidence:
        """Take one step with all algorithms, and return how it fits the change.

        Args:
            number: number of the round.
            vectors: the vectors of the round, as in `StepEvidence`.
            rounding: relative error of the broadcasts.

        """
        error = float((vectors["b"][1::2] * rounding).square().sum())
        self._numbers = self._numbers or len(vectors["b"])
        if len(vectors["b"]) != self._numbers:
            self.stop()
        fit, test = dict[Track, Matrix](), dict[Track, Matrix]()
        for late in (0, 1):
            # The means of some readings begin one round later.
            cases = [one for one in CASES if (one.part == "'") == bool(late)]
            tracked = [(case, mean) for case in cases for mean in MEANS]
            needed = {
                name
                for case, mean in tracked
                for name in (case.target, *case.mean_difference(mean))
            }
            if number < late or late in self._stopped:
                continue
            if needed - vectors.keys():
                self._stopped.add(late)
                continue
            means = torch.stack([_mean(case, mean, vectors) for case, mean in tracked])
            changes = torch.stack([vectors[case.target] for case, _ in tracked])
            for algorithm in self._algorithms:
                moved, root = self._step(algorithm, number - late, late, means)
                parts = torch.stack((changes * root, moved, changes), 1)  # (tracks, 3, numbers)
                for half, products in ((slice(0, None, 2), fit), (slice(1, None, 2), test)):
                    chosen = parts[:, :, half]
                    found = (chosen @ chosen.transpose(1, 2)).numpy()
                    for (case, mean), one in zip(tracked, found, strict=True):
                        products[Track(algorithm, case, mean)] = one
        return AdaptiveEvidence(number, fit, test, error)

    def _step(
        self, algorithm: AdaptiveAlgorithm, number: int, late: int, means: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return m, with what corrects its bias, and sqrt(v) after a step along these means."""
        state = ServerState({}, self._memory.get((algorithm, late), {}))
        memory = algorithm.next_state(number, state, {"all": means}, ()).memory
        self._memory[algorithm, late] = memory
        rate, _ = algorithm.rate_and_decay(number)
        return rate * memory[MEAN]["all"], memory[SQUARE]["all"].sqrt()


_KINDS = (FedAdam, FedYogi, FedAdagrad)


def _mean(case: ReadingCase, mean: str, vectors: Mapping[str, Tensor]) -> Tensor:
    parts = [vectors[name] * factor for name, factor in case.mean_difference(mean).items()]
    return torch.stack(parts).sum(0)


def pooled_step(rounds: Sequence[Matrix]) -> tuple[float, float]:
    """Return the rate and tau that fit the changes of all rounds best, each counting alike."""
    total = np.zeros((3, 3))
    for one in rounds:
        total += one / one[CHANGED, CHANGED]
    # change * sqrt(v) = rate * m + tau * (-change)
    sign = np.array([1.0, -1.0])
    matrix = total[MOVED:, MOVED:] * np.outer(sign, sign)
    rate, tau = least_squares(matrix, total[SQUARED, MOVED:] * sign)
    return float(rate), float(tau)


def weigh_residual(products: Matrix, rate: float, tau: float) -> tuple[float, float]:
    """Return the squares of what a step leaves of the change, and of the change.

    Both are weighted, number by number, by sqrt(v) + tau.
    """
    left, whole = np.array([1.0, -rate, tau]), np.array([1.0, 0.0, tau])
    squares = (float(one @ products @ one) for one in (left, whole))
    residual, target = (max(0.0, one) for one in squares)
    return residual, target
