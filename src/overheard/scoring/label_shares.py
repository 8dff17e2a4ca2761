"""Holds claimed label shares against the true ones."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim, LabelShares, normalised
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Better, Guesses, Score, Scorer
from overheard.core.truth import GroundTruth

KL_FLOOR = 1e-12
"""Added to each share under the logarithm of `kl`, so that a share of 0 costs much, not all."""

TOP = 3
"""How many of the most frequent labels `top3` asks for."""


@final
@dataclass(frozen=True, slots=True)
class LabelSharesScorer(Scorer[LabelShares]):
    """How far claimed shares lie from true ones, by every distance that the papers use.

    With true shares p and claimed shares q, both in float64 and rescaled to sum to 1:

    - `l1`: sum |p - q|, 0 to 2; half of it is the total variation.
    - `l2`: the Euclidean distance; `linf`: the largest error in one share (Chebyshev).
    - `wasserstein`: sum over the first C - 1 labels of |CDF of p - CDF of q|, the labels
      standing at 0 .. C - 1. It depends on the arbitrary order of labels: reported because
      papers do, never to rank by.
    - `kl`: sum p ln((p + e) / (q + e)) in nats with e = 1e-12, the truth first.
    - `js`: the Jensen-Shannon divergence in nats (no root), at most ln 2.
    - `top1`: whether the label claimed to be most frequent is so. `top3` (from 4 labels on):
      which part of the true 3 most frequent labels is among the claimed 3; of the labels held,
      if the target holds fewer. For ties see `top_overlap`.

    Only where the claim says which labels are absent:

    - `null_precision`: which part of the labels named absent is absent; 1 if none was named.
    - `null_recall`: which part of the absent labels was named; 1 if none is absent.
    - `null_exact`: 1 if the two sets are the same, else 0.

    Who names no label absent is never wrong, so `null_precision` has no blind guess to beat:
    read it beside `null_recall` only.
    """

    name: ClassVar[str] = "label_shares"
    claim: ClassVar[type[Claim]] = LabelShares
    headline: ClassVar[str] = "l1"
    source: ClassVar[str] = (
        "L1, L2, Linf: Dai et al. (Decaf, arXiv 2405.15316), eq. 3; Wasserstein, KL, JS: Ma et "
        "al. (Whispers of Data, arXiv 2504.21436), evaluation metrics; top-k: Zhou et al. "
        "(PPA, NDSS 2023)"
    )

    def truth(self, truth: GroundTruth, target: Party, rounds: Collection[int]) -> LabelShares:
        """Shares among all examples that the target trained on in these rounds.

        Raises:
            ValueError: if the target trained in none of them, or on no example.

        """
        counts = truth.label_counts(target, rounds)
        if not bool(counts.any()):
            raise ValueError(f"{target} held no examples in the rounds {sorted(rounds)}")
        return LabelShares(normalised(counts.double()), absent=counts == 0)

    def guesses(self, truth: LabelShares, knowledge: Knowledge) -> Guesses[LabelShares]:
        """Blind: all labels alike and none absent; the auxiliary examples' shares, where known.

        Told which labels the target holds: those alike.
        """
        shares = truth.shares
        nothing_absent = torch.zeros_like(shares, dtype=torch.bool)
        blind = {"uniform": LabelShares(normalised(torch.ones_like(shares)), nothing_absent)}
        prior = knowledge.auxiliary_shares()
        if prior is not None:
            blind["auxiliary prior"] = LabelShares(prior.to(shares.device))
        held = (shares > 0).to(shares.dtype)
        return Guesses(blind, {"uniform on the true support": LabelShares(normalised(held))})

    def score(
        self, claim: LabelShares, truth: LabelShares, guesses: Guesses[LabelShares]
    ) -> tuple[Score, ...]:
        """Every figure for which the claim makes a statement, in the order told above.

        Raises:
            ValueError: if the claim speaks of another number of labels than the truth.

        """
        exact = in_float64(truth, truth)
        claimed = in_float64(claim, truth)
        blind = {name: in_float64(guess, truth) for name, guess in guesses.blind.items()}
        told = {name: in_float64(guess, truth) for name, guess in guesses.told.items()}
        scores = []
        for yardstick in YARDSTICKS:
            value = yardstick.measure(claimed, exact)
            if value is not None:
                scores.append(
                    Score(
                        yardstick.name,
                        value,
                        yardstick.better,
                        yardstick.of_each(blind, exact),
                        yardstick.of_each(told, exact),
                    )
                )
        return tuple(scores)


@final
@dataclass(frozen=True, slots=True)
class Yardstick:
    """One way to measure a claim.

    Args:
        name: of the score.
        better: the direction of a better claim.
        measure: gives the figure from a claim and the truth, both in float64; None where the
            claim makes no such statement.
        guessable: False where a guess is perfect by saying nothing.

    """

    name: str
    better: Better
    measure: Callable[[LabelShares, LabelShares], float | None]
    guessable: bool = True

    def of_each(
        self, claims: Mapping[str, LabelShares], truth: LabelShares
    ) -> dict[str, float]:
        """Give the figure for each guess that makes such a statement."""
        if not self.guessable:
            return {}
        values = {name: self.measure(claim, truth) for name, claim in claims.items()}
        return {name: value for name, value in values.items() if value is not None}


def in_float64(claim: LabelShares, truth: LabelShares) -> LabelShares:
    """The claim in float64 on the truth's device, its rounding to a sum near 1 taken out."""
    if claim.shares.shape != truth.shares.shape:
        raise ValueError(
            f"the claim speaks of {len(claim.shares)} labels, the truth of {len(truth.shares)}"
        )
    device = truth.shares.device
    absent = None if claim.absent is None else claim.absent.to(device)
    return LabelShares(normalised(claim.shares.double().to(device)), absent)


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


def _null_precision(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.absent is None:
        return None
    named = int(claim.absent.sum())
    return int((claim.absent & (truth.shares == 0)).sum()) / named if named else 1.0


def _null_recall(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.absent is None:
        return None
    absent = truth.shares == 0
    there = int(absent.sum())
    return int((claim.absent & absent).sum()) / there if there else 1.0


def _null_exact(claim: LabelShares, truth: LabelShares) -> float | None:
    if claim.absent is None:
        return None
    return float(torch.equal(claim.absent, truth.shares == 0))


YARDSTICKS = (
    Yardstick("l1", "lower", _l1),
    Yardstick("l2", "lower", _l2),
    Yardstick("linf", "lower", _linf),
    Yardstick("wasserstein", "lower", _wasserstein),
    Yardstick("kl", "lower", _kl),
    Yardstick("js", "lower", _js),
    Yardstick("top1", "higher", _top1),
    Yardstick("top3", "higher", _top3),
    Yardstick("null_precision", "higher", _null_precision, guessable=False),
    Yardstick("null_recall", "higher", _null_recall),
    Yardstick("null_exact", "higher", _null_exact),
)
