"""Rows on epsilon: what they guarantee, and refusal of contradictory rows."""

import json
from math import inf
from typing import get_args

import pytest
from pydantic import ValidationError

from overheard.findings.document_rows import IntervalEstimate, VerdictRow
from overheard.findings.epsilon_rows import EpsilonRow, EpsilonVerdict
from tests.gate.documents import bound, epsilon_row


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
        "not confirmed": 2.0,
        "unaccounted": None,
        "contradicted": None,
    }
    assert read(verdict).guaranteed_epsilon == by_verdict.get(verdict, inf)


@pytest.mark.parametrize("verdict", ["holds", "unasked", "refused", "unlike", "unchecked"])
def test_a_missing_ceiling_means_infinite_epsilon(verdict: str):
    assert read(verdict, ceiling=None).guaranteed_epsilon == inf


@pytest.mark.parametrize(
    ("changes", "guaranteed"),
    [
        ({"ceiling": 2.0}, 2.0),
        # No upper bound is known, or an infinite one.
        ({"ceiling": None, "is_recomputed": False}, None),
        ({"ceiling": None, "is_recomputed": True, "pld": None}, inf),
        ({"ceiling": None, "is_recomputed": True, "pld": 3.0}, None),
    ],
)
def test_an_unconfirmed_claim_guarantees_the_upper_bound(
    changes: dict[str, object], guaranteed: float | None
):
    row = read("not confirmed", claim="not confirmed", doubt="nobody told", **changes)
    assert (row.guaranteed_epsilon, row.reason) == (guaranteed, "nobody told")


def test_a_claim_that_an_older_version_called_too_small_is_not_confirmed():
    row = read("overclaimed", claimed=1.0, claimed_for="run")
    assert (row.verdict, row.claim) == ("not confirmed", None)
    assert row.reason.endswith("with an upper bound alone: audit again")
    assert (row.relation, row.record_sampling, row.rounds_text) == (None, None, "")


def test_says_of_how_many_planned_rounds_a_recording_has():
    assert read("holds", rounds=300, recorded_rounds=3).rounds_text == (
        "3 of 300 rounds recorded"
    )


PROVEN = bound(2.5)


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


@pytest.mark.parametrize("verdict", ["holds", "false"])
def test_the_lower_bound_may_exceed_the_ceiling_of_another_neighbouring_relation(verdict: str):
    assert read(verdict, measured=PROVEN).measured is not None  # 2.5, and the ceiling is 2


def verdict_row(**changes: object) -> VerdictRow:
    row = {
        "arm": "none",
        "observers": ("server",),
        "question": "label_shares",
        "about": "clients",
        "verdict": "leaks",
        "attack": "decaf",
        "p_value": 0.005,
        "smallest_p_value": 0.005,
        "gain": IntervalEstimate(mean=0.2, low=0.1, high=0.3),
        "margins": {"l1": 0.1},
        "is_below_margin": False,
        "why": "",
        "score": "l1",
        "sentence": "Decaf reads the label shares.",
        "shared_gains": {},
    }
    return VerdictRow.model_validate({**row, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"p_value": 0.03},
        {"p_value": None},
        {"gain": None},
        {"gain": IntervalEstimate(mean=0.0, low=-0.1, high=0.1)},
        {"verdict": "no leak above margin"},
        {"verdict": "silent"},
        {"p_value": 1.5},
        {"margins": {"l1": -1.0}},
    ],
)
def test_refuses_a_verdict_on_a_threat_that_contradicts_its_test(
    changes: dict[str, object],
) -> None:
    assert verdict_row().verdict == "leaks"
    with pytest.raises(ValidationError):
        verdict_row(**changes)
