"""AUC and power of evidence that distinguishes runs with a shift from control runs."""

from math import sqrt
from statistics import NormalDist

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq

from overheard.core.seeds import Seed
from overheard.questions.shift.statistics.pairs import PairedEvidence
from overheard.statistics.estimate import BOOTSTRAP_DRAWS, CONFIDENCE_LEVEL, Estimate
from overheard.statistics.exact_intervals import estimate_proportion

_NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE_LEVEL) / 2)

_ROOT_MARGIN = 1e-9
"""Relative distance to the estimate, itself always a root, up to which a root is searched."""


def estimate_auc(evidence: PairedEvidence, seed: Seed) -> Estimate:
    """Estimate the probability that a shift has more evidence than a control, ties half.

    It is over all pairs of a run with a shift and any control run; 0.5 without information.

    Each end of the interval is the wider of two. The first is the bootstrap over clusters,
    with a run and its control resampled together. The second is the score interval with the
    variance of Hanley and McNeil 1982, solved as in Newcombe 2006 (method 5), with one run per
    cluster. The bootstrap
    alone has zero width if all pairs are ranked correctly, however few they are.
    """
    clusters = evidence.cluster_count
    wins = np.zeros((clusters, clusters))
    for value, cluster in zip(evidence.shifted, evidence.clusters, strict=True):
        is_above, is_tied = value > evidence.control, value == evidence.control
        wins_of_value = is_above + is_tied / 2  # (controls,)
        wins[cluster] += np.bincount(evidence.control_clusters, wins_of_value, clusters)
    pairs = len(evidence.shifted) * len(evidence.control)
    value = float(wins.sum() / pairs)
    if clusters < 2:
        return Estimate(value, None, None)
    drawn = _draw_clusters(clusters, seed)
    drawn_wins = ((drawn @ wins) * drawn).sum(1)
    drawn_pairs = (drawn @ np.bincount(evidence.clusters)) * (
        drawn @ np.bincount(evidence.control_clusters)
    )
    return _wider_interval(value, drawn_wins / drawn_pairs, *_score_interval(value, clusters))


def _score_interval(value: float, runs: int) -> tuple[float, float]:
    return _lower_bound(value, runs), 1 - _lower_bound(1 - value, runs)


def _lower_bound(value: float, runs: int) -> float:
    """Return the lower end of the score interval of `value` from `runs` runs of each kind."""

    def excess(area: float) -> float:
        inflation = 1 + (runs - 1) * ((1 - area) / (2 - area) + area / (1 + area))
        return value - area - _NORMAL * sqrt(area * (1 - area) * inflation) / runs

    return float(brentq(excess, 0.0, value * (1 - _ROOT_MARGIN))) if value > 0 else 0.0


def estimate_power(evidence: PairedEvidence, percent: int, seed: Seed) -> Estimate | None:
    """Estimate the share of runs with a shift above all but this percentage of controls.

    The threshold is the control of rank ceil((n + 1) (1 - a)) of n, with a = percent / 100. A
    further exchangeable control exceeds it with probability at most a, for any n (order
    statistic of conformal prediction: Vovk et al. 2005). None if n has no such rank: below 19
    controls at 5 percent, below 99 at 1.

    Each end of the interval is the wider of two: the bootstrap over clusters, including the
    threshold, and the exact interval of a proportion with one run per cluster.
    """
    count, clusters = len(evidence.control), evidence.cluster_count
    if _threshold_rank(np.array([count]), percent)[0] > count:
        return None
    (value,) = _power_of_draws(evidence, np.ones((1, clusters), dtype=np.int64), percent)
    if clusters < 2:
        return Estimate(float(value), None, None)
    drawn = _power_of_draws(evidence, _draw_clusters(clusters, seed), percent)
    exact = estimate_proportion(float(value) * clusters, clusters)
    return _wider_interval(float(value), drawn, exact.low, exact.high)


def _threshold_rank(
    counts: Int[np.ndarray, " draws"], percent: int
) -> Int[np.ndarray, " draws"]:
    return -(-(counts + 1) * (100 - percent) // 100)


def _power_of_draws(
    evidence: PairedEvidence, drawn: Int[np.ndarray, "draws clusters"], percent: int
) -> Float[np.ndarray, " draws"]:
    """Return the share above the threshold, with clusters weighted by their draws."""
    order = np.argsort(evidence.control, kind="stable")
    weights = drawn[:, evidence.clusters]  # (draws, pairs)
    running = drawn[:, evidence.control_clusters][:, order].cumsum(1)  # (draws, controls)
    counts = running[:, -1]
    # A draw of small clusters may lack this rank; the highest control is then used.
    rank = np.minimum(_threshold_rank(counts, percent), counts)
    place = (running >= rank[:, None]).argmax(1)
    threshold = evidence.control[order][place]  # (draws,)
    above: Bool[np.ndarray, "draws pairs"] = evidence.shifted[None] > threshold[:, None]
    shares: Float[np.ndarray, " draws"] = (weights * above).sum(1) / weights.sum(1)
    return shares


def _draw_clusters(clusters: int, seed: Seed) -> Int[np.ndarray, "draws clusters"]:
    """Return how often each cluster is drawn in each bootstrap sample."""
    return seed.numpy().multinomial(clusters, np.full(clusters, 1 / clusters), BOOTSTRAP_DRAWS)


def _wider_interval(
    value: float, drawn: Float[np.ndarray, " draws"], low: float | None, high: float | None
) -> Estimate:
    ends = np.quantile(drawn, [(1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2])
    lowest = float(ends[0]) if low is None else min(low, float(ends[0]))
    highest = float(ends[1]) if high is None else max(high, float(ends[1]))
    return Estimate(value, lowest, highest)
