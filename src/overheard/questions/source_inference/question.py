"""The question: which client holds a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.record_owners import RecordOwners, RecordsDigest
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.measures import MEASURES
from overheard.questions.source_inference.scorer import RECORD_SCORES, SourceInferenceScorer
from overheard.questions.source_inference.statistics.re_paired_sources import (
    re_pair_sources,
    record_scores_by_client,
)
from overheard.statistics.permutation_test import MOST_ENUMERATED, RePairedFits


@final
@dataclass(frozen=True, slots=True)
class SourceInferenceQuestion(Question[RecordSources]):
    """Which client holds a record, or that none does."""

    name = "source_inference"
    source = SourceInferenceScorer.source
    measures = MEASURES
    reads = (RecordOwners, RecordsDigest, LabelCounts)
    gives = (CandidateRecords,)
    advice_without_pairings = "take canaries"
    margins = MappingProxyType({"source_accuracy": 0.05})

    @property
    def scorer(self) -> SourceInferenceScorer:
        """Return the scorer of these claims."""
        return SourceInferenceScorer()

    def values_by_target(self, finding: Finding, score: str) -> Mapping[Party, Sequence[float]]:
        """Return the score of each record that a client holds, by client."""
        return record_scores_by_client(finding, score) if score in RECORD_SCORES else {}

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare claims with permuted sources of the candidate records."""
        return re_pair_sources(findings, runs, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of exchanges of two records of different sources, at least."""
        return MOST_ENUMERATED if sizes.exchanges_records and sizes.targets > 1 else 1
