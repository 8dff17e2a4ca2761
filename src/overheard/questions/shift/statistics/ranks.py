"""How well evidence tells runs with a shift from their controls, by its ranks alone."""

from math import sqrt
from statistics import NormalDist

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq

from overheard.core.seeds import Seed
from overheard.questions.shift.statistics.pairs import Evidence
from overheard.statistics.estimate import DRAWS, LEVEL, Estimate
from overheard.statistics.exact import proportion

_NORMAL = NormalDist().inv_cdf((1 + LEVEL) / 2)

_EDGE = 1e-9
"""How near to the estimate itself, always a root, the end of its interval is looked for."""


def auc(evidence: Evidence, seed: Seed) -> Estimate:
    """The chance that a run with a shift has more evidence than a control; ties count half.

    Over all pairs of the two kinds, twins or not: a half where the evidence says nothing.

    The interval is the wider, at each end, of two: the bootstrap over clusters, twins drawn
    together; and the score interval with the variance of Hanley and McNeil 1982, as Newcombe
    2006 (method 5) solves it, for as many runs as there are clusters. The bootstrap alone has
    no width where all pairs are told apart, however few they are.
    """
    clusters = evidence.independent
    wins = np.zeros((clusters, clusters))
    for value, cluster in zip(evidence.shifted, evidence.clusters, strict=True):
        won = (value > evidence.control) + (value == evidence.control) / 2  # (pairs,)
        wins[cluster] += np.bincount(evidence.clusters, won, clusters)
    sizes = np.bincount(evidence.clusters)
    value = float(wins.sum() / len(evidence.shifted) ** 2)
    if clusters < 2:
        return Estimate(value, None, None)
    drawn = _draws(clusters, seed)
    drawn_wins = ((drawn @ wins) * drawn).sum(1)
    return _wider(value, drawn_wins / (drawn @ sizes) ** 2, *_score_interval(value, clusters))


def _score_interval(value: float, runs: int) -> tuple[float, float]:
    return _low_end(value, runs), 1 - _low_end(1 - value, runs)


def _low_end(value: float, runs: int) -> float:
    """The least chance that `value`, of so many runs on either side, does not speak against."""

    def excess(chance: float) -> float:
        spread = 1 + (runs - 1) * ((1 - chance) / (2 - chance) + chance / (1 + chance))
        return value - chance - _NORMAL * sqrt(chance * (1 - chance) * spread) / runs

    return float(brentq(excess, 0.0, value * (1 - _EDGE))) if value > 0 else 0.0


def power(evidence: Evidence, percent: int, seed: Seed) -> Estimate | None:
    """The share of runs with a shift above all but so many percent of controls.

    The threshold is the control of rank ceil((n + 1) (1 - a)) of n, a = percent / 100: a
    further control, drawn alike, lies above it with a chance of a at most, whatever n (the
    order statistic of conformal prediction: Vovk et al. 2005). None where n has no such rank:
    below 19 controls at 5 percent, below 99 at 1.

    The interval is the wider, at each end, of the bootstrap over clusters, threshold and all,
    and the exact one of a proportion among as many runs as there are clusters.
    """
    count, clusters = len(evidence.control), evidence.independent
    if _rank(np.array([count]), percent)[0] > count:
        return None
    (value,) = _above(evidence, np.ones((1, clusters), dtype=np.int64), percent)
    if clusters < 2:
        return Estimate(float(value), None, None)
    drawn = _above(evidence, _draws(clusters, seed), percent)
    exact = proportion(float(value) * clusters, clusters)
    return _wider(float(value), drawn, exact.low, exact.high)


def _rank(counts: Int[np.ndarray, " draws"], percent: int) -> Int[np.ndarray, " draws"]:
    return -(-(counts + 1) * (100 - percent) // 100)


def _above(
    evidence: Evidence, drawn: Int[np.ndarray, "draws clusters"], percent: int
) -> Float[np.ndarray, " draws"]:
    """The share above the threshold where each cluster counts as often as it was drawn."""
    order = np.argsort(evidence.control, kind="stable")
    often = drawn[:, evidence.clusters]  # (draws, pairs)
    running = often[:, order].cumsum(1)
    counts = running[:, -1]
    # A draw of the smallest clusters may have no such rank: its highest control then.
    rank = np.minimum(_rank(counts, percent), counts)
    place = (running >= rank[:, None]).argmax(1)
    threshold = evidence.control[order][place]  # (draws,)
    above: Bool[np.ndarray, "draws pairs"] = evidence.shifted[None] > threshold[:, None]
    shares: Float[np.ndarray, " draws"] = (often * above).sum(1) / counts
    return shares


def _draws(clusters: int, seed: Seed) -> Int[np.ndarray, "draws clusters"]:
    """How often each cluster comes up when as many as there are are drawn with replacement."""
    return seed.numpy().multinomial(clusters, np.full(clusters, 1 / clusters), DRAWS)


def _wider(
    value: float, drawn: Float[np.ndarray, " draws"], low: float | None, high: float | None
) -> Estimate:
    ends = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    lowest = float(ends[0]) if low is None else min(low, float(ends[0]))
    highest = float(ends[1]) if high is None else max(high, float(ends[1]))
    return Estimate(value, lowest, highest)
