"""The scorer of claims about targets from the same sender."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.questions.same_sender.claim import SameSender
from overheard.statistics.average_precision import average_precisions


@final
@dataclass(frozen=True, slots=True)
class SameSenderScorer(Scorer[SameSender]):
    """Scores how well targets from the same sender are ranked above others.

    - `average_precision`: of the ranking of other targets by score, where targets of the same
      user are relevant; ties are broken at random. The uninformed guess is a random order,
      which scores above the fraction of relevant targets: see `statistics.average_precision`.
      It is defined only if some compared targets come from the same sender and some do not.

    Rows that classify pairs by one threshold use all targets of a run: see
    the question's `summary_rows`.
    """

    name: ClassVar[str] = "same_sender"
    claim_type: ClassVar[type[Claim]] = SameSender
    headline: ClassVar[str] = "average_precision"
    source: ClassVar[str] = (
        "Matching: Orekondy et al. (Gradient-Leaks, arXiv 1805.05838); applied here to two "
        "updates of unknown senders, to link pseudonyms"
    )

    def true_claim(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: SameSender
    ) -> SameSender:
        """Return 1 for each compared target of the same user, else 0.

        Raises:
            NeedsError: if the ground truth does not state the user of one of them.

        """
        users = truth.facts.need(UsersOfClients)
        user = users.user_of(target)
        is_same = [float(users.user_of(other) == user) for other in claim.others]
        return SameSender(claim.others, torch.tensor(is_same))

    def uninformed_guesses(
        self, claim: SameSender, knowledge: Knowledge
    ) -> Mapping[str, SameSender]:
        """Guess a random order, by equal scores."""
        tied = SameSender(claim.others, torch.zeros(len(claim.others)))
        return {"a random order": tied}

    def informed_guesses(self, truth: SameSender) -> Mapping[str, SameSender]:
        """Return no guess: no part of the truth can be known separately."""
        return {}

    def score(
        self, claim: SameSender, truth: SameSender, guesses: Guesses[SameSender]
    ) -> tuple[Score, ...]:
        """Return the average precision, if it is defined.

        Raises:
            ValueError: if the claim and the truth compare with different targets.

        """
        if not 0 < float(truth.scores.sum()) < len(truth.others):
            return ()
        uninformed = {
            name: _precision(guess, truth) for name, guess in guesses.uninformed.items()
        }
        value = _precision(claim, truth)
        return (Score("average_precision", value, "higher", uninformed, {}),)


def _precision(claim: SameSender, truth: SameSender) -> float:
    if claim.others != truth.others:
        raise ClaimError("the claim and the truth compare the target with different others")
    scores = claim.scores.double().numpy(force=True)
    same = truth.scores.long().numpy(force=True)
    return float(average_precisions(scores, same, 2)[1])
