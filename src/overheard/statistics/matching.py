"""How well scores tell pairs of the same person from pairs of two, at any threshold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from overheard.core.seeds import Seed
from overheard.statistics.estimate import Estimate
from overheard.statistics.resample import Resampled, resampled

STEPS = 400
"""Thresholds of each kind of pairs at which the bootstrap looks: quantiles of its scores. The
figures themselves are worked out at every score."""


@final
@dataclass(frozen=True, slots=True)
class Matches:
    """Pairs of a target and somebody it may be, in one run.

    Args:
        scores: evidence that the two are the same, larger = more.
        same: whether they are.
        person: who stands behind the target, from 0: what the bootstrap draws.
        known: how many of these people are known to the attacker; they come first.
        unknown: how many others there are.

    """

    scores: Float[np.ndarray, " pairs"]
    same: Bool[np.ndarray, " pairs"]
    person: Int[np.ndarray, " pairs"]
    known: int
    unknown: int

    @property
    def has_both(self) -> bool:
        """Whether there are pairs of both kinds."""
        return bool(self.same.any()) and not bool(self.same.all())


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """Errors by threshold, from the strictest, which lets nothing pass, to the mildest.

    Args:
        false_alarms: the share of pairs of two persons that pass, 0 to 1.
        hits: the share of pairs of one person that pass.

    """

    false_alarms: Float[np.ndarray, "draws steps"]
    hits: Float[np.ndarray, "draws steps"]

    def area(self) -> Float[np.ndarray, " draws"]:
        """The chance that a pair of one person has more evidence than one of two, ties half."""
        widths = np.diff(self.false_alarms, axis=1)
        heights: Float[np.ndarray, "draws widths"] = (self.hits[:, 1:] + self.hits[:, :-1]) / 2
        areas: Float[np.ndarray, " draws"] = (widths * heights).sum(1)
        return areas

    def equal_error(self) -> Float[np.ndarray, " draws"]:
        """The rate at which false alarms and misses are as frequent.

        Between two thresholds the curve is taken as straight: one may choose by chance.
        """
        excess = self.false_alarms - (1 - self.hits)  # from -1 to 1, never falling
        after = (excess >= 0).argmax(1)
        lines, before = np.arange(len(after)), after - 1
        low, high = excess[lines, before], excess[lines, after]
        part = -low / (high - low)
        start, end = self.false_alarms[lines, before], self.false_alarms[lines, after]
        rates: Float[np.ndarray, " draws"] = start + part * (end - start)
        return rates


Figure = Callable[[Curve], Float[np.ndarray, " draws"]]


def curve(held: Matches) -> Curve:
    """The errors at every score that occurs; one line of them."""
    order = np.argsort(-held.scores, kind="stable")
    ordered, same = held.scores[order], held.same[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    hits = np.cumsum(same)[ends] / same.sum()
    false = np.cumsum(~same)[ends] / (~same).sum()
    return Curve(np.append(0.0, false)[None], np.append(0.0, hits)[None])


def matching_auc(runs: Sequence[Matches], seed: Seed) -> Estimate:
    """The area under the curve, the mean over runs, with its interval over people."""
    return _over_runs(runs, Curve.area, seed)


def equal_error_rate(runs: Sequence[Matches], seed: Seed) -> Estimate:
    """The equal error rate, the mean over runs, with its interval over people."""
    return _over_runs(runs, Curve.equal_error, seed)


def _over_runs(runs: Sequence[Matches], figure: Figure, seed: Seed) -> Estimate:
    value = float(np.mean([figure(curve(run))[0] for run in runs]))
    drawn = [
        Resampled(run.known, run.unknown, partial(_figure, figure, _passed(run)))
        for run in runs
    ]
    return resampled(drawn, seed, value)


@final
@dataclass(frozen=True, slots=True)
class _Passed:
    """How many pairs of each person pass, by threshold, from the strictest to none at all."""

    same: Float[np.ndarray, "people steps"]
    other: Float[np.ndarray, "people steps"]


def _passed(held: Matches) -> _Passed:
    thresholds = np.unique(
        np.concatenate([_spread(held.scores[held.same]), _spread(held.scores[~held.same])])
    )
    steps, people = len(thresholds) + 1, held.known + held.unknown
    # The strictest that it passes comes first; what passes none comes last.
    first = len(thresholds) - np.searchsorted(thresholds, held.scores, side="right")
    place = held.person * steps + first
    counts = [
        np.bincount(place[kind], minlength=people * steps).reshape(people, steps)
        for kind in (held.same, ~held.same)
    ]
    return _Passed(*(table.cumsum(1).astype(np.float64) for table in counts))


def _spread(scores: Float[np.ndarray, " pairs"]) -> Float[np.ndarray, " steps"]:
    ordered = np.sort(scores)
    return ordered[np.linspace(0, len(ordered) - 1, STEPS).astype(np.int64)]


def _figure(
    figure: Figure, passed: _Passed, often: Int[np.ndarray, "draws people"]
) -> Float[np.ndarray, " draws"]:
    nothing = np.zeros((len(often), 1))
    rates = []
    for table in (passed.other, passed.same):
        counts = often.astype(np.float64) @ table  # (draws, steps)
        # Where nobody was drawn who has pairs of this kind there is no rate.
        with np.errstate(invalid="ignore"):
            rates.append(np.append(nothing, counts / counts[:, -1:], axis=1))
    return figure(Curve(*rates))


def hits_at(
    runs: Sequence[Matches], false_alarms: Float[np.ndarray, " rates"]
) -> Float[np.ndarray, " rates"]:
    """The share of true pairs that pass where so many others do, the mean over runs."""
    curves = [curve(run) for run in runs]
    hits = [np.interp(false_alarms, one.false_alarms[0], one.hits[0]) for one in curves]
    means: Float[np.ndarray, " rates"] = np.mean(hits, axis=0)
    return means
