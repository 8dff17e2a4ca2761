"""Holds what is claimed of which targets are of one sender against who sent them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.claims import Claim
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.truth import GroundTruth, true_user
from overheard.questions.same_sender.claim import SameSender
from overheard.statistics.precision import average_precisions


@final
@dataclass(frozen=True, slots=True)
class SameSenderScorer(Scorer[SameSender]):
    """How well other targets are ranked by whether they are of the same sender.

    - `average_precision`: of the others ranked by their score, those of the same user being
      the ones sought; ties are broken by chance. The blind guess is a random order, which gets
      more than the share of those sought: see `statistics.precision`. Only of a target that was
      compared with some of the same sender and with some of another.

    How well pairs are told apart by one threshold takes all targets of a run together: see
    `auditing.identification`.
    """

    name: ClassVar[str] = "same_sender"
    claim: ClassVar[type[Claim]] = SameSender
    headline: ClassVar[str] = "average_precision"
    source: ClassVar[str] = (
        "Matching: Orekondy et al. (Gradient-Leaks, arXiv 1805.05838); asked here of two "
        "updates of unknown senders, as one links pseudonyms"
    )

    def truth(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: SameSender
    ) -> SameSender:
        """Of each target that this one was compared with, 1 if it is of the same user, else 0.

        Raises:
            NeedsError: if the truth does not say who one of them is.

        """
        own = true_user(truth, target)
        same = [float(true_user(truth, other) == own) for other in claim.others]
        return SameSender(claim.others, torch.tensor(same))

    def blind(self, asked: SameSender, knowledge: Knowledge) -> Mapping[str, SameSender]:
        """All alike."""
        alike = SameSender(asked.others, torch.zeros(len(asked.others)))
        return {"a random order": alike}

    def told(self, truth: SameSender) -> Mapping[str, SameSender]:
        """Nobody is told a part."""
        return {}

    def score(
        self, claim: SameSender, truth: SameSender, guesses: Guesses[SameSender]
    ) -> tuple[Score, ...]:
        """The figure told above, if there is anything to rank.

        Raises:
            ValueError: if the claim compares with others than the truth does.

        """
        if not 0 < float(truth.scores.sum()) < len(truth.others):
            return ()
        blinds = {name: _precision(guess, truth) for name, guess in guesses.blind.items()}
        value = _precision(claim, truth)
        return (Score("average_precision", value, "higher", blinds, {}),)


def _precision(claim: SameSender, truth: SameSender) -> float:
    if claim.others != truth.others:
        raise ValueError("the claim compares the target with others than the truth does")
    scores = claim.scores.double().numpy(force=True)
    same = truth.scores.long().numpy(force=True)
    return float(average_precisions(scores, same, 2)[1])
