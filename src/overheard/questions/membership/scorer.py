"""Holds what is claimed of who trained on which records against who did."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.truth import GroundTruth
from overheard.questions.membership.claim import Membership

FALSE_POSITIVES = ((0.01, "tpr_at_1_percent"), (0.001, "tpr_at_0.1_percent"))
"""Rates of false positives, and what the rate of true ones is called there."""


@final
@dataclass(frozen=True, slots=True)
class MembershipScorer(Scorer[Membership]):
    """How well records that the target trained on are told from those of nobody.

    - `membership_auc`: the chance that one of the former has a higher score than one of the
      latter, ties half. Blind: 0.5.
    - `membership_accuracy`: the mean of both shares that are told right where a score above 0
      says that the record was trained on. Blind: 0.5.
    - `tpr_at_1_percent`, `tpr_at_0.1_percent`: the share of the former above all but so many
      of the latter (Carlini et al. 2022), where there are as many as a hundred or a thousand of
      them: fewer cannot tell. Of records that tie at the threshold, as large a part is above it
      as may be of the latter. Blind: 0.01 and 0.001.

    Records that others hold count as neither, unless all clients are the target; those of
    observers always do.
    """

    name: ClassVar[str] = "membership"
    claim: ClassVar[type[Claim]] = Membership
    headline: ClassVar[str] = "membership_auc"
    source: ClassVar[str] = (
        "Carlini et al. 2022 (Membership Inference Attacks From First Principles), Section IV"
    )

    def truth(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: Membership
    ) -> Membership:
        """1 for what the target holds, -1 for what nobody holds, 0 for what others hold.

        Raises:
            NeedsError: if the truth does not say what the target holds.

        """
        if target not in (COHORT, *truth.members) or not truth.members:
            raise NeedsError(f"the truth does not say which records {target} trained on")
        told = torch.full((len(claim.scores),), -1.0)
        for places in (truth.set_aside, *truth.members.values()):
            told[list(places)] = 0.0
        told[list(truth.members_of(target))] = 1.0
        return Membership(told)

    def blind(self, asked: Membership, knowledge: Knowledge) -> Mapping[str, Membership]:
        """All records alike."""
        return {"a coin": Membership(torch.zeros(len(asked.scores)))}

    def told(self, truth: Membership) -> Mapping[str, Membership]:
        """Nobody is told a part."""
        return {}

    def score(
        self, claim: Membership, truth: Membership, guesses: Guesses[Membership]
    ) -> tuple[Score, ...]:
        """Every figure that so many records can tell, in the order told above."""
        inside, outside = claim.scores[truth.scores > 0], claim.scores[truth.scores < 0]
        if not len(inside) or not len(outside):
            return ()
        found = {"membership_auc": (_auc(inside, outside), 0.5)}
        right = (inside > 0).double().mean() + (outside <= 0).double().mean()
        found["membership_accuracy"] = (float(right) / 2, 0.5)
        for rate, name in FALSE_POSITIVES:
            if len(outside) * rate >= 1:
                found[name] = (_above(inside, outside, rate), rate)
        return tuple(
            Score(name, value, "higher", {"a coin": blind}, {})
            for name, (value, blind) in found.items()
        )


def _auc(inside: Float[Tensor, " members"], outside: Float[Tensor, " outsiders"]) -> float:
    """Mann and Whitney's statistic over all pairs."""
    levels = np.sort(outside.double().numpy())
    own = inside.double().numpy()
    below = np.searchsorted(levels, own, side="left")
    level = np.searchsorted(levels, own, side="right") - below
    return float((below + level / 2).mean() / len(levels))


def _above(
    inside: Float[Tensor, " members"], outside: Float[Tensor, " outsiders"], rate: float
) -> float:
    """The share of members above all but this share of the outsiders, ties in like parts."""
    # Ranks from the highest score on; those that tie share one.
    levels, rank = np.unique(-torch.cat([inside, outside]).numpy(), return_inverse=True)
    own = np.bincount(rank[: len(inside)], minlength=len(levels))
    others = np.bincount(rank[len(inside) :], minlength=len(levels))
    room = rate * len(outside) - (others.cumsum() - others)
    part = np.where(others > 0, room / np.maximum(others, 1), 1.0).clip(0, 1)
    return float((own * part * (room >= 0)).sum() / len(inside))
