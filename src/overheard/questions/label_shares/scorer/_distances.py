"""Distances between claimed and true label shares."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.questions.label_shares.claim import LabelShares
from overheard.statistics.score_metric import ScoreMetric

KL_FLOOR = 1e-12
"""Added to each share inside the logarithm of `kl`, so that a share of 0 has a finite cost."""

TOP_LENGTH = 3
"""Number of most frequent labels that `top3` compares."""


def _l1(claim: LabelShares, truth: LabelShares) -> float:
    return float((claim.shares - truth.shares).abs().sum())


def _l2(claim: LabelShares, truth: LabelShares) -> float:
    return float((claim.shares - truth.shares).square().sum().sqrt())


def _linf(claim: LabelShares, truth: LabelShares) -> float:
    return float((claim.shares - truth.shares).abs().max())


def _wasserstein(claim: LabelShares, truth: LabelShares) -> float:
    return float((claim.shares - truth.shares).cumsum(0)[:-1].abs().sum())


def _kl(claim: LabelShares, truth: LabelShares) -> float:
    ratio = (truth.shares + KL_FLOOR) / (claim.shares + KL_FLOOR)
    return float((truth.shares * ratio.log()).sum())


def _js(claim: LabelShares, truth: LabelShares) -> float:
    middle = (claim.shares + truth.shares) / 2
    mean_entropy = (_entropy(claim.shares) + _entropy(truth.shares)) / 2
    # For equal shares, rounding may give a divergence below 0.
    return max(0.0, _entropy(middle) - mean_entropy)


def _entropy(shares: Float[Tensor, " classes"]) -> float:
    return float(torch.special.entr(shares).sum())


def _top1(claim: LabelShares, truth: LabelShares) -> float:
    return top_overlap(claim, truth, 1)


def _top3(claim: LabelShares, truth: LabelShares) -> float | None:
    return top_overlap(claim, truth, TOP_LENGTH) if len(truth.shares) > TOP_LENGTH else None


def top_overlap(claim: LabelShares, truth: LabelShares, length: int) -> float:
    """Return the fraction of the truly most frequent labels that are claimed to be, 0 to 1.

    Both lists have `length` labels, or as many as the target holds, if fewer. Labels tied at
    the end of the claimed list share its remaining places: a claim of equal shares for C labels
    gives each 1 / C of a place and gains nothing. Of labels tied at the end of the true list,
    any is correct, up to the remaining places.
    """
    # Lists take a seventh of the time that torch takes for so few numbers.
    claimed: list[float] = claim.shares.tolist()
    true: list[float] = truth.shares.tolist()
    length = min(length, sum(share > 0 for share in true))
    pairs = list(zip(_top_places(claimed, length), true, strict=True))
    threshold = sorted(true, reverse=True)[length - 1]
    remaining = length - sum(share > threshold for share in true)
    correct = sum(place for place, share in pairs if share > threshold)
    of_tied = sum(place for place, share in pairs if share == threshold)
    return (correct + min(remaining, of_tied)) / length


def _top_places(shares: Sequence[float], length: int) -> list[float]:
    """Return each label's fraction of a place in the list of the most frequent ones."""
    threshold = sorted(shares, reverse=True)[length - 1]
    remaining = length - sum(share > threshold for share in shares)
    each = remaining / shares.count(threshold)
    return [1.0 if share > threshold else each * (share == threshold) for share in shares]


DISTANCE_YARDSTICKS = (
    ScoreMetric("l1", "lower", _l1),
    ScoreMetric("l2", "lower", _l2),
    ScoreMetric("linf", "lower", _linf),
    ScoreMetric("wasserstein", "lower", _wasserstein),
    ScoreMetric("kl", "lower", _kl),
    ScoreMetric("js", "lower", _js),
    ScoreMetric("top1", "higher", _top1),
    ScoreMetric("top3", "higher", _top3),
)
