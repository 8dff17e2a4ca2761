"""What the doctor says of the differential privacy of a run, in findings."""

from dataclasses import dataclass
from typing import Literal, final

from overheard.findings.document_rows import DocumentPart

CriticismSeverity = Literal["critical", "theoretical", "negligible"]
"""How much a fault takes away from a claim; see `doctor.criticism.SEVERITIES`."""


@final
@dataclass(frozen=True, slots=True)
class RunCriticism:
    """A fault that a rule of the doctor found in a run; see `doctor.criticism`.

    Args:
        id: identifier of the rule, such as "noise-repeats".
        severity: severity of the fault. Only a critical one is an alarm.
        title: the fault in a few words.
        what: what is wrong, with the numbers of this run.
        where: the place.
        evidence: what was seen there.
        mend: what to do about it.
        reference: where the fault is described.

    """

    id: str
    severity: CriticismSeverity
    title: str
    what: str
    where: str
    evidence: str
    mend: str
    reference: str


@final
class CriticismRow(DocumentPart):
    """A fault in the differential privacy of an arm; see `RunCriticism`."""

    arm: str
    id: str
    severity: CriticismSeverity
    title: str
    what: str
    where: str
    evidence: str
    mend: str
    reference: str
