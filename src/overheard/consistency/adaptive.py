"""Server steps that are not linear in the mean: their steps on a smaller sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from overheard.algorithms.adaptive import (
    AdaptiveAlgorithm,
    FedAdagrad,
    FedAdam,
    FedYogi,
)
from overheard.consistency.readings import OTHER_READINGS, STATED, ReadingCase
from overheard.core.algorithm.algorithm import Algorithm, ServerState
from overheard.core.messages import Weights

FLOWER_TAUS = (1e-3, 1e-9)
"""The defaults of tau in Flower's strategies, newer and older."""

DEFAULTS: tuple[AdaptiveAlgorithm, ...] = tuple(
    one
    for tau in FLOWER_TAUS
    for one in (
        FedAdam(rate=1.0, tau=tau),
        FedAdam(rate=1.0, tau=tau, bias_correction=False),
        FedYogi(rate=1.0, tau=tau),
        FedAdagrad(rate=1.0, tau=tau),
    )
)
"""The algorithms that are tried with their defaults and a rate that is fitted."""

CASES = tuple(
    case
    for case in (STATED, *OTHER_READINGS)
    # A gradient makes the same step the other way, which a negative rate shows.
    # What takes a change of the model is unknown in the first round.
    if case.sign == 1 and not case.more
)
"""The readings of which the steps are computed."""

MEANS = ("examples", "equal")


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
        fit: by track, the squares of the change and of the step, and their product, on the half
            on which the rate is fitted.
        test: the same on the other half.
        rounding: the square of the error that rounded broadcasts allow, on that half.

    """

    round: int
    fit: Mapping[Track, tuple[float, float, float]]
    test: Mapping[Track, tuple[float, float, float]]
    rounding: float


@final
class AdaptiveTracks:
    """Follows the memories of adaptive servers from the first round on.

    Args:
        stated: the stated algorithm, tried with its settings; None = none is stated.

    """

    def __init__(self, stated: Algorithm | None) -> None:
        own = (replace(stated, rate=1.0),) if isinstance(stated, _KINDS) else ()
        self._algorithms: tuple[AdaptiveAlgorithm, ...] = (*own, *DEFAULTS)
        self._memory: dict[AdaptiveAlgorithm, Mapping[str, Weights]] = {}
        self._cases: tuple[tuple[ReadingCase, str], ...] | None = None
        self._numbers = 0
        self._is_broken = False

    def stop(self) -> None:
        """Give up, as a round of which the memories depend on is unknown."""
        self._is_broken = True

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
        if self._cases is None:
            self._begin(number, vectors)
        assert self._cases is not None
        is_other = len(vectors["b"]) != self._numbers
        if self._is_broken or is_other or not self._cases:
            self._is_broken = True
            return AdaptiveEvidence(number, {}, {}, error)
        means = torch.stack([_mean(case, mean, vectors) for case, mean in self._cases])
        fit, test = {}, {}
        for algorithm in self._algorithms:
            state = ServerState(
                {"all": torch.zeros_like(means)}, self._memory.get(algorithm, {})
            )
            after = algorithm.next_state(number, state, {"all": means}, ())
            self._memory[algorithm] = after.memory
            for (case, mean), step in zip(self._cases, after.weights["all"], strict=True):
                if case.target not in vectors:
                    continue
                track, change = Track(algorithm, case, mean), vectors[case.target]
                fit[track] = _products(change[::2], step[::2])
                test[track] = _products(change[1::2], step[1::2])
        return AdaptiveEvidence(number, fit, test, error)

    def _begin(self, number: int, vectors: Mapping[str, Tensor]) -> None:
        """Choose the readings whose mean is known from the first round on."""
        self._numbers = len(vectors["b"])
        self._cases = tuple(
            (case, mean)
            for case in CASES
            for mean in MEANS
            if number == 0
            and mean in vectors
            and all(name in vectors for name in case.mean_difference(mean))
        )


_KINDS = (FedAdam, FedYogi, FedAdagrad)


def _mean(case: ReadingCase, mean: str, vectors: Mapping[str, Tensor]) -> Tensor:
    known = mean if mean in vectors else "examples"
    parts = [vectors[name] * factor for name, factor in case.mean_difference(known).items()]
    return torch.stack(parts).sum(0)


def _products(change: Tensor, step: Tensor) -> tuple[float, float, float]:
    return float(change @ change), float(step @ step), float(change @ step)


def pooled_rate(fits: Sequence[tuple[float, float, float]]) -> float:
    """Return the rate that fits the changes of all rounds best, each round counting alike."""
    product = sum(one[2] / one[0] for one in fits if one[0])
    square = sum(one[1] / one[0] for one in fits if one[0])
    return product / square if square else 0.0


def residual(products: tuple[float, float, float], rate: float) -> float:
    """Return the square of the change minus the rate times the step; 0 or more."""
    change, step, both = products
    return float(np.maximum(change - 2 * rate * both + rate**2 * step, 0.0))
