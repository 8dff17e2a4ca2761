"""The question: the value of an attribute of the user behind a sender."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from types import MappingProxyType
from typing import final

from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.seeds import Seed
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.findings.controlled_findings import control_mean
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.findings.re_paired_fits import RePairedFits
from overheard.findings.score_row import ScoreRow
from overheard.questions.attribute.claim import Attribute
from overheard.questions.attribute.measures import MEASURES
from overheard.questions.attribute.scorer import AttributeScorer
from overheard.questions.attribute.statistics.attribute_rows import attribute_rows
from overheard.questions.attribute.statistics.re_paired_attributes import re_pair_attributes


@final
@dataclass(frozen=True, slots=True)
class AttributeQuestion(Question[Attribute]):
    """The value of an attribute of the user behind a sender."""

    name = "attribute"
    source = AttributeScorer.source
    measures = MEASURES
    reads = (UsersOfClients, Attributes)
    gives = (KnownUsers,)
    margins = MappingProxyType({"accuracy": 0.10})
    control = "permutation"
    is_about_users = True
    needs_all_rounds = True

    @property
    def scorer(self) -> AttributeScorer:
        """The scorer of this question."""
        return AttributeScorer()

    def references(
        self, score: str, planned: Sequence[Finding], control: Sequence[Finding]
    ) -> Mapping[str, float]:
        """Return the control's mean."""
        return control_mean(score, control)

    def summary_rows(self, findings: Sequence[Finding], seed: Seed) -> Sequence[ScoreRow]:
        """Return rows of the balanced accuracy."""
        return attribute_rows(findings, seed)

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare claims with the attributes of permuted people."""
        return re_pair_attributes(findings, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of permutations of people; fewer if many have the same value."""
        return factorial(sizes.targets)
