"""Standards by kind of finding: which section of which standard names it, and who checked."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, final

from overheard.findings.threat_verdict import TargetKind
from overheard.report.question_files import read_question_files

WasRead = Literal["original", "public copy", "contents", "opening", "second hand"]

Level = Literal["client", "record", "cohort", "run"]

EPSILON = "epsilon"
"""The kind of findings on claims of differential privacy."""

NO_IDENTIFIER = "no identifier"
"""What is printed for a finding that no standard names."""

_READING_NOTES: dict[WasRead, str] = {
    "original": "",
    "public copy": "read in a public copy",
    "contents": "not verified against the original: only its table of contents was read",
    "opening": "not verified against the original: only its first part was read",
    "second hand": "not verified against the original",
}


@final
@dataclass(frozen=True, slots=True)
class StandardReference:
    """One section of a standard.

    Args:
        key: its name in `standards.toml`.
        id: its identifier within the standard.
        standard: the name of the standard.
        edition: the edition that was read.
        sentence: what it says, in this project's own words.
        source: where to find it.
        was_read: how it was checked.
        checked_by: who checked it, when, and in what.

    """

    key: str
    id: str
    standard: str
    edition: str
    sentence: str
    source: str
    was_read: WasRead
    checked_by: str

    @property
    def reading_note(self) -> str:
        """How far the entry was verified; "" if it was read in the original."""
        return _READING_NOTES[self.was_read]

    @property
    def name(self) -> str:
        """The standard with its edition and the identifier."""
        return f"{self.standard} ({self.edition}), {self.id}"


@final
@dataclass(frozen=True, slots=True)
class FindingStandards:
    """What standards say on one kind of finding.

    Args:
        kind: a question, or `EPSILON`.
        level: what the finding is about.
        references: the sections that name it; () = no identifier.
        note: what they leave open.

    """

    kind: str
    level: Level
    references: tuple[StandardReference, ...]
    note: str


@final
@dataclass(frozen=True, slots=True)
class UntestedThreat:
    """A threat that no audit of this version tests, with the sections that name it."""

    threat: str
    references: tuple[StandardReference, ...]


def standards_of(kind: str, about: TargetKind = "clients") -> FindingStandards:
    """Return what standards say on a kind of finding.

    Args:
        kind: a question, or `EPSILON`.
        about: whether the targets are single clients or the cohort.

    Returns:
        The entry of the cohort if there is one and it is asked for, else the entry of the kind.
        A kind without an entry, such as a plugin's question, has no identifier.

    """
    entries = [one for one in all_finding_standards() if one.kind == kind]
    of_cohort = [one for one in entries if one.level == "cohort"]
    others = [one for one in entries if one.level != "cohort"]
    preferred = [*of_cohort, *others] if about == "cohort" else [*others, *of_cohort]
    if preferred:
        return preferred[0]
    level: Level = "cohort" if about == "cohort" else "client"
    return FindingStandards(kind, level, (), "This kind of finding has no entry.")


def untested_threats() -> tuple[UntestedThreat, ...]:
    """Return the threats that no audit of this version tests."""
    return _read()[2]


def all_finding_standards() -> tuple[FindingStandards, ...]:
    """Return all entries on findings."""
    return _read()[1]


def all_references() -> tuple[StandardReference, ...]:
    """Return all sections of standards."""
    return _read()[0]


@cache
def _read() -> tuple[
    tuple[StandardReference, ...], tuple[FindingStandards, ...], tuple[UntestedThreat, ...]
]:
    place = files("overheard.report.evidence").joinpath("standards.toml")
    general = tomllib.loads(place.read_text(encoding="utf-8"))
    tables = (general, *read_question_files("standards.toml"))
    references = tuple(
        StandardReference(**entry) for table in tables for entry in table.get("references", ())
    )
    by_key = {one.key: one for one in references}

    def select(keys: Sequence[str]) -> tuple[StandardReference, ...]:
        return tuple(by_key[key] for key in keys)

    found = tuple(
        FindingStandards(**{**entry, "references": select(entry["references"])})
        for table in tables
        for entry in table["findings"]
    )
    untested = tuple(
        UntestedThreat(entry["threat"], select(entry["references"]))
        for entry in general["untested"]
    )
    return references, found, untested
