"""Every question has an entry or says that no standard names it; no entry claims too much."""

import re
from dataclasses import fields
from typing import get_args

import pytest

from overheard.plans.registries import QUESTIONS
from overheard.report.evidence.standards import (
    EPSILON,
    FindingStandards,
    StandardReference,
    WasRead,
    all_finding_standards,
    all_references,
    standards_of,
    untested_threats,
)


@pytest.mark.parametrize("kind", [*QUESTIONS.plugins(), EPSILON])
def test_every_kind_of_finding_has_an_entry(kind: str) -> None:
    entries = [one for one in all_finding_standards() if one.kind == kind]
    assert entries
    assert standards_of(kind) in entries


@pytest.mark.parametrize("entry", all_finding_standards(), ids=lambda one: one.kind)
def test_an_entry_names_a_place_or_says_why_not(entry: FindingStandards) -> None:
    assert entry.references or entry.note
    assert len(set(entry.references)) == len(entry.references)
    assert entry.level in ("client", "record", "cohort", "run")


def test_no_two_entries_are_about_the_same() -> None:
    kinds = [(one.kind, one.level) for one in all_finding_standards()]
    assert len(set(kinds)) == len(kinds)
    keys = [one.key for one in all_references()]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("reference", all_references(), ids=lambda one: one.key)
def test_a_reference_has_all_fields(reference: StandardReference) -> None:
    for field in fields(reference):
        assert str(getattr(reference, field.name)).strip(), field.name
    assert reference.was_read in get_args(WasRead)
    assert reference.sentence.endswith(".")
    # Who checked it, on which day, and in what.
    assert re.fullmatch(r"Overheard, \d{1,2} [A-Z][a-z]+ 20\d\d: .+", reference.checked_by)
    assert reference.source.startswith("https://")


@pytest.mark.parametrize("reference", all_references(), ids=lambda one: one.key)
def test_a_reference_that_was_not_read_says_so(reference: StandardReference) -> None:
    is_original = reference.was_read in ("original", "public copy")
    assert ("not verified against the original" in reference.reading_note) == (not is_original)


@pytest.mark.parametrize("reference", all_references(), ids=lambda one: one.key)
def test_of_a_table_of_contents_only_titles_are_stated(reference: StandardReference) -> None:
    is_title = reference.sentence.startswith(
        ("Title of the clause: “", "Title of the annex: “")
    )
    assert is_title == (reference.was_read == "contents")


def test_every_reference_is_used() -> None:
    used = {ref for one in all_finding_standards() for ref in one.references}
    used |= {ref for one in untested_threats() for ref in one.references}
    assert used == set(all_references())


def test_nothing_claims_that_a_standard_is_met() -> None:
    texts = [one.sentence for one in all_references()]
    texts += [one.note for one in all_finding_standards()]
    assert not [text for text in texts if re.search(r"complian|complies|conform", text, re.I)]


def test_hazard_numbers_that_were_not_checked_are_left_out() -> None:
    """The hazards of SP 800-226 are known second hand only."""
    assert not [
        one for one in all_references() if re.search(r"\bH\d+\b", one.id + one.sentence)
    ]


def test_a_question_of_a_plugin_has_no_identifier() -> None:
    entry = standards_of("a_question_of_a_plugin")
    assert entry.references == ()
    assert entry.note


def test_the_cohort_has_an_entry_of_its_own_where_it_differs() -> None:
    assert standards_of("label_shares").level == "client"
    assert standards_of("label_shares", "cohort").level == "cohort"
    assert standards_of("membership", "cohort").level == "record"
