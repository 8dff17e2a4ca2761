"""Rows on epsilon: what they guarantee, and refusal of contradictory rows."""

import json
from math import inf
from typing import get_args

import pytest
from pydantic import ValidationError

from overheard.epsilon.epsilon_results import EpsilonVerdict
from overheard.findings.document_rows import EpsilonRow
from tests.gate.documents import epsilon_row


def read(verdict: str, **changes: object) -> EpsilonRow:
    return EpsilonRow.model_validate_json(json.dumps(epsilon_row(verdict, **changes)))


@pytest.mark.parametrize("verdict", get_args(EpsilonVerdict))
def test_the_guaranteed_epsilon_depends_on_the_verdict(verdict: EpsilonVerdict):
    by_verdict = {
        "holds": 2.0,
        "unasked": 2.0,
        "refused": 2.0,
        "unlike": 2.0,
        "unchecked": 2.0,
        "unaccounted": None,
        "contradicted": None,
    }
    assert read(verdict).guaranteed_epsilon == by_verdict.get(verdict, inf)


@pytest.mark.parametrize("verdict", ["holds", "unasked", "refused", "unlike", "unchecked"])
def test_a_missing_ceiling_means_infinite_epsilon(verdict: str):
    assert read(verdict, ceiling=None).guaranteed_epsilon == inf


PROVEN = {"at_least": 2.5, "attack": "peek"}


@pytest.mark.parametrize(
    ("verdict", "changes"),
    [
        ("holds", {"measured": None}),
        ("violated", {"ceiling": 2.5}),
        ("violated", {"ceiling": None}),
        ("violated", {"measured": None}),
        ("contradicted", {"ceiling": 2.5}),
        ("unasked", {"measured": PROVEN}),
        ("refused", {"measured": PROVEN}),
        ("unlike", {"measured": PROVEN}),
        ("unaccounted", {"ceiling": 2.0}),
        ("flawed", {"ceiling": 2.0}),
        ("uncovered", {"ceiling": 2.0}),
    ],
)
def test_refuses_a_verdict_that_contradicts_its_numbers(
    verdict: str, changes: dict[str, object]
):
    read(verdict)
    with pytest.raises(ValidationError, match="contradicts"):
        read(verdict, **changes)


@pytest.mark.parametrize("verdict", ["holds", "overclaimed"])
def test_the_lower_bound_may_exceed_the_ceiling_of_another_neighbouring_relation(verdict: str):
    assert read(verdict, measured=PROVEN).measured is not None  # 2.5, and the ceiling is 2


def test_the_mechanism_is_the_class_name_in_the_settings():
    assert read("holds").mechanism == "LocalDp"
    assert read("holds", defense="noise by hand").mechanism == "noise by hand"
