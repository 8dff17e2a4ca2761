"""Where nothing can leak, audits say "leaks" no more often than they state."""

from dataclasses import replace
from pathlib import Path

import pytest

from overheard.plans.registries import SPLITS, questions
from tests.nulls.audits import Federation, audit_null, federations
from tests.nulls.table import Results, most_false, table_lines

NIGHTLY = 120
"""Audits of each federation that are made nightly."""

FEW = 6
"""Audits that all tests make of one federation."""

FEDERATIONS = {one.name: one for one in federations()}


def test_every_question_and_every_split_has_a_federation_in_which_nothing_leaks() -> None:
    cells = {(name, one.split) for one in FEDERATIONS.values() for name in one.questions}
    assert {question for question, _ in cells} == set(questions())
    assert {split for _, split in cells} == set(SPLITS.plugins())
    by_user = {name for name, one in SPLITS.plugins().items() if one.has_one_user_per_client}
    for question in questions().values():
        expected = by_user if question.is_about_users else set(SPLITS.plugins())
        if question.name == "target_distribution":
            # Where numbers are to be predicted, there are no classes to divide by.
            expected = {one for one in expected if not SPLITS.plugins()[one].needs_classes}
        assert {split for name, split in cells if name == question.name} == expected


def test_users_who_are_shuffled_over_the_rows_of_a_table_are_not_identified() -> None:
    federation = replace(
        FEDERATIONS["own table, by_user, users, users"], questions=("identity",)
    )
    found = [one for number in range(FEW) for one in audit_null(federation, number)]
    assert all(one.is_tested for one in found)
    assert sum(one.verdict == "leaks" for one in found) <= most_false(FEW)


@pytest.mark.parametrize("kind", ["users", "changes", "records"])
def test_an_audit_of_noise_gives_verdicts_that_might_be_false(kind: str) -> None:
    federation = next(
        one
        for one in FEDERATIONS.values()
        if (one.kind, one.null, one.source.name) == (kind, "noise", "own texts")
    )
    found = {one.question: one for one in audit_null(federation, 0)}
    assert found.keys() == set(federation.questions)
    assert all(one.is_tested and one.p_value < 1 for one in found.values())


@pytest.mark.nightly
@pytest.mark.parametrize("federation", FEDERATIONS.values(), ids=list(FEDERATIONS))
def test_false_leaks_are_as_rare_as_stated(federation: Federation, tmp_path: Path) -> None:
    if federation.source.why_missing:
        pytest.skip(federation.source.why_missing)
    results = Results(tmp_path / "results.jsonl")
    for number in range(NIGHTLY):
        results.audit(federation, number)
    counts = results.counts([federation])
    assert not any(cell.is_too_high for cell in counts.values()), table_lines(counts)
    assert all(cell.tested >= NIGHTLY / 2 for cell in counts.values()), table_lines(counts)


def test_the_limit_is_that_of_a_test_that_is_right() -> None:
    # Of 120 verdicts of which 2.5 % are false, 3 are expected, and more than 9 are this rare.
    assert (most_false(33), most_false(120)) == (5, 9)
