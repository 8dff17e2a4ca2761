"""Coverage, width and distrust of claimed intervals, and the accuracy of size estimates."""

from math import log2

from overheard.questions.label_shares.claim import LabelShares
from overheard.statistics.score_metric import ScoreMetric

ROUNDING_ERROR = 1e-6
"""Largest rounding error of the end of an interval in float32."""


def _coverage(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.bounds is None:
        return None
    low, high = (
        truth.shares.new_tensor(ends) for ends in (claim.bounds.low, claim.bounds.high)
    )
    is_inside = (low - ROUNDING_ERROR <= truth.shares) & (truth.shares <= high + ROUNDING_ERROR)
    return float(is_inside.double().mean())


def _width(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.bounds is None:
        return None
    low, high = claim.bounds.low, claim.bounds.high
    return (sum(high) - sum(low)) / len(low)


def _doubted(claim: LabelShares, truth: LabelShares) -> float | None:
    return None if claim.bounds is None else float(claim.reason_for_doubt is not None)


def _size_factor(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.size is None or truth.size is None:
        return None
    return abs(log2(claim.size.examples / truth.size.examples))


def _size_coverage(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.size is None or truth.size is None:
        return None
    low, high = claim.size.low, claim.size.high
    if low is None or high is None:
        return None
    return float(low <= truth.size.examples <= high)


UNCERTAINTY_YARDSTICKS = (
    ScoreMetric("coverage", "higher", _coverage, is_guessable=False),
    ScoreMetric("width", "lower", _width, is_guessable=False),
    ScoreMetric("doubted", "lower", _doubted, is_guessable=False),
    ScoreMetric("size_factor", "lower", _size_factor, is_guessable=False),
    ScoreMetric("size_coverage", "higher", _size_coverage, is_guessable=False),
)
