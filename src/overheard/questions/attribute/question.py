"""The question: which attribute the person behind a sender has."""

from dataclasses import dataclass
from typing import final

from overheard.findings.question import Question
from overheard.questions.attribute.claim import Attribute
from overheard.questions.attribute.scorer import AttributeScorer


@final
@dataclass(frozen=True, slots=True)
class AttributeQuestion(Question[Attribute]):
    """Which attribute the person behind a sender has."""

    name = "attribute"
    source = AttributeScorer.source

    @property
    def scorer(self) -> AttributeScorer:
        """What holds claims against the truth."""
        return AttributeScorer()
