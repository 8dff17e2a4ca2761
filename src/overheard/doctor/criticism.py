"""What the doctor says about the differential privacy of a run: criticisms, and their rules."""

from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

Severity = Literal["critical", "theoretical", "negligible"]
"""How much a fault takes away from a claim of differential privacy."""

SEVERITIES: Mapping[Severity, str] = {
    "critical": "the released outputs do not satisfy the claim",
    "theoretical": "the claim fails only against an adversarial, largely theoretical attacker",
    "negligible": "the claim becomes weaker by a bounded, small amount",
}
"""Each severity in words, as McKenna and McMahan use them (JAX Privacy, "Sharp edges: pitfalls
of differentially private training", 2026). Only a critical fault is an alarm."""


@dataclass(frozen=True, slots=True)
class DoctorRule:
    """A rule of the doctor.

    Args:
        id: identifier in lower case with hyphens, such as "noise-repeats".
        severity: severity of a fault that the rule finds.
        title: the fault in a few words, such as "the same noise in several rounds".
        mend: what to do about it, in one or two sentences.
        reference: where the fault is described (authors, year, section), or a public case.

    """

    id: str
    severity: Severity
    title: str
    mend: str
    reference: str


class DescribedRule(ABC):
    """What each rule of the doctor says of itself, whatever it looks at."""

    name: ClassVar[str]
    severity: ClassVar[Severity]
    title: ClassVar[str]
    mend: ClassVar[str]
    reference: ClassVar[str]

    @property
    def about(self) -> DoctorRule:
        """What the rule is about, in words."""
        return DoctorRule(self.name, self.severity, self.title, self.mend, self.reference)


@dataclass(frozen=True, slots=True)
class Criticism:
    """A fault that a rule found in this run or in this code.

    Args:
        rule: the rule that found it.
        what: what is wrong, in one or two sentences, with the numbers of this case.
        where: the place: a mechanism, a round, a message, or a file with its line.
        evidence: what was seen there: figures of this run, or the lines of code.

    """

    rule: DoctorRule
    what: str
    where: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Unseen:
    """What a rule could not look at.

    Args:
        rule: the rule.
        why: why it could not look, and what would let it, in one or two sentences.

    """

    rule: DoctorRule
    why: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the rules of the doctor found.

    Args:
        criticisms: faults, critical ones first.
        passed: rules that looked and found no fault.
        unseen: what rules could not look at.
        notes: facts that are no faults, in sentences, such as who is protected from whom.

    """

    criticisms: tuple[Criticism, ...]
    passed: tuple[DoctorRule, ...]
    unseen: tuple[Unseen, ...]
    notes: tuple[str, ...] = ()

    @property
    def alarms(self) -> tuple[Criticism, ...]:
        """The criticisms that are alarms: those of critical faults."""
        return tuple(one for one in self.criticisms if one.rule.severity == "critical")


def sort_by_severity(criticisms: Iterable[Criticism]) -> tuple[Criticism, ...]:
    """Return criticisms, each once and critical ones first."""
    order = list(SEVERITIES)
    found = dict.fromkeys(criticisms)
    return tuple(sorted(found, key=lambda one: order.index(one.rule.severity)))


def join_diagnoses(diagnoses: Iterable[Diagnosis]) -> Diagnosis:
    """Return one diagnosis with what all of them say, critical faults first.

    A rule passed only if it found no fault in any of them and could look at one.
    """
    parts = tuple(diagnoses)
    found = sort_by_severity(one for part in parts for one in part.criticisms)
    faulty = {one.rule for one in found}
    passed = dict.fromkeys(one for part in parts for one in part.passed)
    return Diagnosis(
        found,
        tuple(one for one in passed if one not in faulty),
        tuple(dict.fromkeys(one for part in parts for one in part.unseen)),
        tuple(dict.fromkeys(one for part in parts for one in part.notes)),
    )
