"""The scorer of claimed label shares."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, final

import torch

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares, SizeEstimate
from overheard.questions.label_shares.scorer._absence import ABSENCE_YARDSTICKS
from overheard.questions.label_shares.scorer._distances import DISTANCE_YARDSTICKS
from overheard.questions.label_shares.scorer._uncertainty import UNCERTAINTY_YARDSTICKS

YARDSTICKS = (*DISTANCE_YARDSTICKS, *ABSENCE_YARDSTICKS, *UNCERTAINTY_YARDSTICKS)


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
        self, asked: LabelShares, knowledge: Knowledge
    ) -> Mapping[str, LabelShares]:
        """Guess even shares without absent labels, and the auxiliary shares if known.

        Raises:
            ClaimError: if the claim has another number of labels than the task.

        """
        if len(asked.shares) != knowledge.classes:
            raise ClaimError(
                f"the claim has {len(asked.shares)} labels, the task has {knowledge.classes}"
            )
        guesses = {"uniform": _even_guess(len(asked.shares))}
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
        blind = {name: to_float64(guess, truth) for name, guess in guesses.uninformed.items()}
        told = {name: to_float64(guess, truth) for name, guess in guesses.informed.items()}
        scores = []
        for yardstick in YARDSTICKS:
            value = yardstick.measure(claimed, exact)
            if value is not None:
                scores.append(
                    Score(
                        yardstick.name,
                        value,
                        yardstick.better,
                        yardstick.measure_each(blind, exact),
                        yardstick.measure_each(told, exact),
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
