"""Scores of claims about the labels that a target does not hold."""

import torch

from overheard.questions.label_shares.claim import LabelShares
from overheard.statistics.score_metric import ScoreMetric


def _null_precision(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.absent is None:
        return None
    claimed = int(claim.absent.sum())
    return int((claim.absent & (truth.shares == 0)).sum()) / claimed if claimed else 1.0


def _null_recall(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.absent is None:
        return None
    absent = truth.shares == 0
    count = int(absent.sum())
    return int((claim.absent & absent).sum()) / count if count else 1.0


def _null_exact(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.absent is None:
        return None
    return float(torch.equal(claim.absent, truth.shares == 0))


def _null_brier(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.null_probability is None:
        return None
    absent = (truth.shares == 0).double()
    return float((claim.null_probability - absent).square().mean())


ABSENCE_YARDSTICKS = (
    ScoreMetric("null_precision", "higher", _null_precision, is_guessable=False),
    ScoreMetric("null_recall", "higher", _null_recall),
    ScoreMetric("null_exact", "higher", _null_exact),
    ScoreMetric("null_brier", "lower", _null_brier),
)
