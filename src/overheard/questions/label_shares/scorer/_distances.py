"""How far claimed label shares lie from true ones."""

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.questions.label_shares.claim import LabelShares
from overheard.statistics.yardstick import Yardstick

KL_FLOOR = 1e-12
"""Added to each share under the logarithm of `kl`, so that a share of 0 costs much, not all."""

TOP = 3
"""How many of the most frequent labels `top3` asks for."""


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
    own = (_entropy(claim.shares) + _entropy(truth.shares)) / 2
    # Equal shares may miss 0 by a rounding; a divergence below 0 would only confuse.
    return max(0.0, _entropy(middle) - own)


def _entropy(shares: Float[Tensor, " classes"]) -> float:
    return float(torch.special.entr(shares).sum())


def _top1(claim: LabelShares, truth: LabelShares) -> float:
    return top_overlap(claim, truth, 1)


def _top3(claim: LabelShares, truth: LabelShares) -> float | None:
    return top_overlap(claim, truth, TOP) if len(truth.shares) > TOP else None


def top_overlap(claim: LabelShares, truth: LabelShares, length: int) -> float:
    """Which part of the true most frequent labels is among the claimed ones, 0 to 1.

    As many labels are asked for as `length` says, or as the target holds, if fewer. Where the
    claim ties at the edge of its list, the tied labels share the places left: a claim that all
    of C labels are alike names each with 1 / C of a place, and gains nothing by it. Where the
    truth ties at the edge, any of the tied labels is right, up to the places left.
    """
    length = min(length, int((truth.shares > 0).sum()))
    named = _places(claim.shares, length)
    edge = truth.shares.topk(length).values[-1]
    surely, tied = truth.shares > edge, truth.shares == edge
    left = length - int(surely.sum())
    right = float(named[surely].sum()) + min(float(left), float(named[tied].sum()))
    return right / length


def _places(shares: Float[Tensor, " classes"], length: int) -> Float[Tensor, " classes"]:
    """How much of a place each label has in the list of the most frequent ones."""
    edge = shares.topk(length).values[-1]
    surely, tied = shares > edge, shares == edge
    left = length - int(surely.sum())
    return surely.double() + tied.double() * (left / int(tied.sum()))


DISTANCES = (
    Yardstick("l1", "lower", _l1),
    Yardstick("l2", "lower", _l2),
    Yardstick("linf", "lower", _linf),
    Yardstick("wasserstein", "lower", _wasserstein),
    Yardstick("kl", "lower", _kl),
    Yardstick("js", "lower", _js),
    Yardstick("top1", "higher", _top1),
    Yardstick("top3", "higher", _top3),
)
