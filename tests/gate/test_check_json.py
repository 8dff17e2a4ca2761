"""The JSON of a check has everything that the tables have."""

import json
from datetime import date
from pathlib import Path
from typing import Any

from overheard.findings.document_rows import IntervalEstimate
from overheard.gate.judged_findings import CheckResult
from overheard.gate.policy import CostRule, Policy
from overheard.gate.rule_sources import RuleSources
from overheard.gate.verdict import Acceptance, RuleVerdict
from overheard.gate.verdict_formats import as_check_json

POLICY = Policy(costs=(CostRule(name="cheap", bytes_at_most=9.0),))

FIGURE = IntervalEstimate(mean=10.0, low=10.0, high=11.0)


def document(verdict: RuleVerdict, *notes: str) -> dict[str, Any]:
    text = as_check_json(
        CheckResult("Audit", (verdict,), notes),
        POLICY,
        RuleSources(Path("p.toml"), {"cheap": 3}),
        1,
    )
    read = json.loads(text)
    assert isinstance(read, dict)
    return read


def test_a_verdict_has_its_place_value_and_line() -> None:
    verdict = RuleVerdict(
        *("cheap", "bytes", "bare", "fail", "at most 9", FIGURE, "beyond"), arm="bare"
    )
    found = document(verdict, "Careful.")
    assert (found["format"], found["status"], found["exit_code"]) == (
        "overheard check",
        "fail",
        1,
    )
    assert found["counts"] == {
        "fail": 1, "inconclusive": 0, "excepted": 0, "excused": 0, "pass": 0,
    }  # fmt: skip
    assert (found["audit"], found["policy"], found["notes"]) == (
        "Audit",
        "p.toml",
        ["Careful."],
    )
    assert found["verdicts"] == [
        {
            "kind": "costs",
            "line": 3,
            "rule": "cheap",
            "status": "fail",
            "subject": "bare",
            "arm": "bare",
            "observers": None,
            "attack": "",
            "score": "bytes",
            "value": {"mean": 10.0, "low": 10.0, "high": 11.0},
            "limit": "at most 9",
            "why": "beyond",
            "exception": None,
        }
    ]


def test_an_exception_has_its_reason_and_last_day() -> None:
    accepted = Acceptance("fail", "ticket 12", date(2027, 1, 31))
    verdict = RuleVerdict(
        *("cheap", "bytes", "bare\x1b", "excepted", "at most 9"), acceptance=accepted
    )
    (found,) = document(verdict)["verdicts"]
    assert found["exception"] == {
        "status": "fail",
        "reason": "ticket 12",
        "expires": "2027-01-31",
    }
    assert (found["subject"], found["value"]) == ("bare\\x1b", None)
