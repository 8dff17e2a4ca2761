"""The question: which known user sent an update."""

from dataclasses import dataclass
from typing import final

from overheard.findings.question import Question
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.scorer import IdentityScorer


@final
@dataclass(frozen=True, slots=True)
class IdentityQuestion(Question[Identity]):
    """Which known user sent an update."""

    name = "identity"
    source = IdentityScorer.source

    @property
    def scorer(self) -> IdentityScorer:
        """What holds claims against the truth."""
        return IdentityScorer()
