"""The records whose membership is asked."""

from dataclasses import dataclass
from typing import final

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge, KnownFact


@final
@dataclass(frozen=True, slots=True)
class CandidateRecords(KnownFact):
    """The records of which an attacker asks whether a client trained on them.

    Args:
        records: the records.
        are_crafted: whether they are canaries whose gradients are crafted.

    """

    records: Examples
    are_crafted: bool = False

    how_to_get = "candidate records (data.candidates)"


def candidate_records(knowledge: Knowledge) -> Examples:
    """Return the candidate records that an attacker knows.

    Raises:
        NeedsError: if it knows none.

    """
    return knowledge.facts.need(CandidateRecords).records
