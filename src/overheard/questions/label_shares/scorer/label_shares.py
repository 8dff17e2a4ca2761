"""Holds claimed label shares against the true ones."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch

from overheard.core.claims import Claim
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.truth import GroundTruth
from overheard.learning.simplex import normalised
from overheard.questions.label_shares.claim import LabelShares, SizeEstimate
from overheard.questions.label_shares.scorer._absence import ABSENCE
from overheard.questions.label_shares.scorer._distances import DISTANCES
from overheard.questions.label_shares.scorer._uncertainty import UNCERTAINTY

YARDSTICKS = (*DISTANCES, *ABSENCE, *UNCERTAINTY)


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

    Only where the claim gives the chance that a label is absent:

    - `null_brier`: the mean over labels of (chance - truth)^2, the truth being 1 for an absent
      label, else 0. The blind guess is a chance of 0.5 each, which gets 0.25 whatever the
      truth: the best constant for one who does not know how common absence is.

    Only where it bounds the shares, each with a chance of 0.9:

    - `coverage`: which part of the labels has its true share inside the bounds. It should be
      near 0.9; far below, the bounds cannot be trusted, far above they are too wide.
    - `width`: the mean distance of the bounds. Bounds of 0 and 1 always hold, so the two are
      read together, and neither has a blind guess to beat.

    Only where it estimates the size, and nobody who heard nothing can:

    - `size_factor`: |log2(claimed / true)|: 1 = off by a factor of 2. The true size is the mean
      number of examples a round, over the rounds in which the target trained.
    - `size_coverage`: 1 if the true size lies within the bounds of the estimate, else 0.
    """

    name: ClassVar[str] = "label_shares"
    claim: ClassVar[type[Claim]] = LabelShares
    headline: ClassVar[str] = "l1"
    source: ClassVar[str] = (
        "L1, L2, Linf: Dai et al. (Decaf, arXiv 2405.15316), eq. 3; Wasserstein, KL, JS: Ma et "
        "al. (Whispers of Data, arXiv 2504.21436), evaluation metrics; top-k: Zhou et al. "
        "(PPA, NDSS 2023)"
    )

    def truth(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: LabelShares
    ) -> LabelShares:
        """Shares among all examples that the target trained on in these rounds.

        Raises:
            ValueError: if the target trained in none of them, or on no example.

        """
        counts = truth.label_counts(target, rounds)
        if not bool(counts.any()):
            raise ValueError(f"{target} held no examples in the rounds {sorted(rounds)}")
        a_round = int(counts.sum()) / len(truth.rounds_of(target).intersection(rounds))
        return LabelShares(
            normalised(counts.double()), absent=counts == 0, size=SizeEstimate(a_round)
        )

    def blind(self, asked: LabelShares, knowledge: Knowledge) -> Mapping[str, LabelShares]:
        """All labels alike and none absent; the auxiliary examples' shares, where known."""
        shares = asked.shares
        alike = LabelShares(
            normalised(torch.ones_like(shares)),
            absent=torch.zeros_like(shares, dtype=torch.bool),
            null_probability=torch.full_like(shares, 0.5),
        )
        blind = {"uniform": alike}
        prior = knowledge.auxiliary_shares()
        if prior is not None:
            blind["auxiliary prior"] = LabelShares(prior.to(shares.device))
        return blind

    def told(self, truth: LabelShares) -> Mapping[str, LabelShares]:
        """Told which labels the target holds: those alike."""
        held = (truth.shares > 0).to(truth.shares.dtype)
        return {"uniform on the true support": LabelShares(normalised(held))}

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


def in_float64(claim: LabelShares, truth: LabelShares) -> LabelShares:
    """The claim in float64 on the truth's device, its rounding to a sum near 1 taken out."""
    if claim.shares.shape != truth.shares.shape:
        raise ValueError(
            f"the claim speaks of {len(claim.shares)} labels, the truth of {len(truth.shares)}"
        )
    device, chances = truth.shares.device, claim.null_probability
    return replace(
        claim,
        shares=normalised(claim.shares.double().to(device)),
        absent=None if claim.absent is None else claim.absent.to(device),
        null_probability=None if chances is None else chances.double().to(device),
    )
