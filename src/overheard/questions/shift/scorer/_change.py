"""Scores of the claimed change: which labels rose and fell, and by how much."""

from jaxtyping import Bool
from torch import Tensor

from overheard.questions.shift.claim import GaussianEstimate, Shift
from overheard.statistics.score_metric import ScoreMetric

ROUNDING = 1e-6
"""Tolerance for rounding: smaller changes count as 0, and intervals are widened by it."""


def risen_labels(truth: Shift) -> Bool[Tensor, " classes"] | None:
    """Return the labels whose true share rose; None if there are none."""
    if truth.change is None:
        return None
    labels = truth.change.value > ROUNDING
    return labels if bool(labels.any()) else None


def _change_l1(claim: Shift, truth: Shift) -> float | None:
    if claim.change is None or truth.change is None:
        return None
    return float((claim.change.value - truth.change.value).abs().sum())


def direction_score(claim: Shift, truth: Shift) -> float | None:
    """Return 1 if the labels that rose are claimed to rise in sum, 0 if to fall, else 0.5."""
    labels = risen_labels(truth)
    if claim.change is None or labels is None:
        return None
    return (float(claim.change.value[labels].sum().sign()) + 1) / 2


def _signs_right(claim: Shift, truth: Shift) -> float | None:
    if claim.change is None or truth.change is None or risen_labels(truth) is None:
        return None
    true = truth.change.value
    correct = (claim.change.value.sign() * true.sign() + 1) / 2  # (classes,)
    return float((correct * true.abs()).sum() / true.abs().sum())


def _risen_error(claim: Shift, truth: Shift) -> float | None:
    labels = risen_labels(truth)
    if claim.shares_after is None or truth.shares_after is None or labels is None:
        return None
    return abs(float((claim.shares_after.value - truth.shares_after.value)[labels].sum()))


def _risen_coverage(claim: Shift, truth: Shift) -> float | None:
    labels = risen_labels(truth)
    if claim.shares_after is None or truth.shares_after is None or labels is None:
        return None
    _, low, high = claim.shares_after.sum_over(labels)
    true, _, _ = truth.shares_after.sum_over(labels)
    return float(low - ROUNDING <= true <= high + ROUNDING)


def _coverage(claim: Shift, truth: Shift) -> float | None:
    if claim.change is None or truth.change is None:
        return None
    error = (claim.change.value - truth.change.value).abs()
    return float((error <= _half_widths(claim.change) + ROUNDING).double().mean())


def _width(claim: Shift, truth: Shift) -> float | None:
    return None if claim.change is None else 2 * float(_half_widths(claim.change).mean())


def _half_widths(estimate: GaussianEstimate) -> Tensor:
    """Return half the width of the interval of each number."""
    return estimate.value.new_tensor(estimate.interval().high) - estimate.value


CHANGE_MEASURES = (
    ScoreMetric("change_l1", "lower", _change_l1),
    ScoreMetric("direction", "higher", direction_score),
    ScoreMetric("signs_right", "higher", _signs_right),
    ScoreMetric("risen_error", "lower", _risen_error),
    ScoreMetric("risen_coverage", "higher", _risen_coverage, is_guessable=False),
    ScoreMetric("coverage", "higher", _coverage, is_guessable=False),
    ScoreMetric("width", "lower", _width, is_guessable=False),
)
