"""The scorer of claimed label shares."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares, SizeEstimate
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


UNCERTAINTY_METRICS = (
    ScoreMetric("coverage", "higher", _coverage),
    ScoreMetric("width", "lower", _width),
    ScoreMetric("doubted", "lower", _doubted),
    ScoreMetric("size_factor", "lower", _size_factor),
    ScoreMetric("size_coverage", "higher", _size_coverage),
)


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


METRICS = (*DISTANCE_YARDSTICKS, *ABSENCE_YARDSTICKS, *UNCERTAINTY_METRICS)


@final
@dataclass(frozen=True, slots=True)
class LabelSharesScorer(Scorer[LabelShares]):
    """Compares claimed with true shares by all distances that the papers use.

    With true shares p and claimed shares q, both in float64 and rescaled to sum to 1:

    - `l1`: sum |p - q|, 0 to 2; half of it is the total variation.
    - `l2`: the Euclidean distance; `linf`: the largest error in one share (Chebyshev).
    - `wasserstein`: sum over the first C - 1 labels of |CDF of p - CDF of q|, with the labels
      at 0 .. C - 1. It depends on the arbitrary order of labels. It is reported because papers
      report it; never rank attacks by it.
    - `kl`: sum p ln((p + e) / (q + e)) in nats with e = 1e-12, the truth first.
    - `js`: the Jensen-Shannon divergence in nats (no root), at most ln 2.
    - `top1`: whether the label claimed to be most frequent is. `top3` (for 4 labels or more):
      the fraction of the true 3 most frequent labels that is among the claimed 3; if the target
      holds fewer labels, of these. For ties see `top_overlap`.

    Only if the claim states which labels are absent:

    - `null_precision`: the fraction of labels claimed absent that is absent; 1 if none is
      claimed.
    - `null_recall`: the fraction of absent labels that is claimed absent; 1 if none is absent.
    - `null_exact`: 1 if the two sets are equal, else 0.

    A claim that no label is absent has a perfect `null_precision`, so this score has no
    uninformed guess. Read it together with `null_recall`.

    Only if the claim gives the probability that a label is absent:

    - `null_brier`: the mean over labels of (probability - truth)^2, where the truth is 1 for an
      absent label, else 0. The uninformed guess is 0.5 for each, which always scores 0.25: the
      best constant if the frequency of absence is unknown.

    Only if the claim has intervals of the shares, with level 0.9 each:

    - `coverage`: the fraction of labels whose true share is inside its interval. It should be
      near 0.9: if far below, intervals are unreliable; if far above, they are too wide.
    - `width`: the mean width of the intervals. Intervals from 0 to 1 always contain the truth,
      so read both scores together; neither has an uninformed guess.
    - `doubted`: 1 if the attack itself says, without the truth, that its intervals cannot be
      trusted (`LabelShares.reason_for_doubt`), else 0.

    Only if the claim estimates the size; there is no uninformed guess:

    - `size_factor`: |log2(claimed / true)|: 1 = wrong by a factor of 2. The true size is the
      mean number of examples per round, over the rounds in which the target trained.
    - `size_coverage`: 1 if the true size is inside the interval of the estimate, else 0.
    """

    name: ClassVar[str] = "label_shares"
    claim_type: ClassVar[type[Claim]] = LabelShares
    headline: ClassVar[str] = "l1"
    source: ClassVar[str] = (
        "L1, L2, Linf: Dai et al. (Decaf, arXiv 2405.15316), eq. 3; Wasserstein, KL, JS: Ma et "
        "al. (Whispers of Data, arXiv 2504.21436), evaluation metrics; top-k: Zhou et al. "
        "(PPA, NDSS 2023)"
    )

    def true_claim(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: LabelShares
    ) -> LabelShares:
        """Return the shares among all examples that the target trained on in these rounds.

        Raises:
            NeedsError: if label counts are unknown, or are of none of the rounds.
            ValueError: if the target trained on no example in these rounds.

        """
        label_counts = truth.facts.need(LabelCounts)
        counts = label_counts.counts_of(target, rounds)
        if not bool(counts.any()):
            raise ValueError(
                f"{target} has no training examples in the rounds {sorted(rounds)}"
            )
        per_round = int(counts.sum()) / len(label_counts.rounds_of(target).intersection(rounds))
        return LabelShares(
            normalize_to_shares(counts.double()),
            absent=counts == 0,
            size=SizeEstimate(per_round),
        )

    def uninformed_guesses(
        self, claim: LabelShares, knowledge: Knowledge
    ) -> Mapping[str, LabelShares]:
        """Guess even shares without absent labels, and the auxiliary shares if known.

        Raises:
            ClaimError: if the claim has another number of labels than the task.

        """
        if len(claim.shares) != knowledge.classes:
            raise ClaimError(
                f"the claim has {len(claim.shares)} labels, the task has {knowledge.classes}"
            )
        guesses = {"uniform": _even_guess(len(claim.shares))}
        prior = knowledge.auxiliary_label_shares()
        if prior is not None:
            guesses["auxiliary prior"] = LabelShares(prior)
        return guesses

    def informed_guesses(self, truth: LabelShares) -> Mapping[str, LabelShares]:
        """Guess even shares over the labels that the target truly holds."""
        support = (truth.shares > 0).to(truth.shares.dtype)
        return {"uniform on the true support": LabelShares(normalize_to_shares(support))}

    def score(
        self, claim: LabelShares, truth: LabelShares, guesses: Guesses[LabelShares]
    ) -> tuple[Score, ...]:
        """Return every score that the claim allows, in the order of the class docstring.

        Raises:
            ValueError: if the claim and the truth have different numbers of labels.

        """
        exact = to_float64(truth, truth)
        claimed = to_float64(claim, truth)
        uninformed = {
            name: to_float64(guess, truth) for name, guess in guesses.uninformed.items()
        }
        told = {name: to_float64(guess, truth) for name, guess in guesses.informed.items()}
        scores = []
        for metric in METRICS:
            value = metric.measure(claimed, exact)
            if value is not None:
                scores.append(
                    Score(
                        metric.name,
                        value,
                        metric.better,
                        metric.measure_each(uninformed, exact),
                        metric.measure_each(told, exact),
                    )
                )
        return tuple(scores)


@lru_cache
def _even_guess(classes: int) -> LabelShares:
    """Return even shares of labels that may as well be absent as not."""
    even = torch.ones(classes, dtype=torch.float64)
    return LabelShares(
        normalize_to_shares(even),
        absent=torch.zeros_like(even, dtype=torch.bool),
        null_probability=torch.full_like(even, 0.5),
    )


def to_float64(claim: LabelShares, truth: LabelShares) -> LabelShares:
    """Convert the claim to float64 on the truth's device, with shares that sum to 1."""
    if claim.shares.shape != truth.shares.shape:
        raise ClaimError(
            f"the claim has {len(claim.shares)} labels, the truth has {len(truth.shares)}"
        )
    device, null = truth.shares.device, claim.null_probability
    return replace(
        claim,
        shares=normalize_to_shares(claim.shares.double().to(device)),
        absent=None if claim.absent is None else claim.absent.to(device),
        null_probability=None if null is None else null.double().to(device),
    )
