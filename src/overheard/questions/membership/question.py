"""The question: which records a client trained on."""

from dataclasses import dataclass
from typing import final

from overheard.findings.question import Question
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.measures import MEASURES
from overheard.questions.membership.scorer import MembershipScorer


@final
@dataclass(frozen=True, slots=True)
class MembershipQuestion(Question[Membership]):
    """Which records a client trained on."""

    name = "membership"
    source = MembershipScorer.source
    measures = MEASURES

    @property
    def scorer(self) -> MembershipScorer:
        """Return the scorer of these claims."""
        return MembershipScorer()
