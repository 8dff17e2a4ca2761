"""SARIF has the properties that the standard and code scanning require."""

import json
from datetime import date
from pathlib import Path
from typing import Any
from unicodedata import category

from hypothesis import given
from hypothesis import strategies as st

from overheard.findings.document_rows import IntervalEstimate
from overheard.gate.judged_findings import CheckResult
from overheard.gate.policy import LeakRule, Policy, VerdictRule
from overheard.gate.rule_sources import RuleSources
from overheard.gate.verdict import Acceptance, RuleVerdict, Status
from overheard.gate.verdict_formats import as_sarif

FIGURE = IntervalEstimate(mean=0.7, low=0.65, high=0.75)

POLICY = Policy(
    verdicts=(VerdictRule(name="no leak"),),
    leaks=(LeakRule(name="records", question="q", score="auc", no_better_than=0.6),),
)

SOURCES = RuleSources(Path("ci") / "my policy.toml", {"records": 7})


def verdict(
    status: Status = "fail", why: str = "", what: str = "bare; lira", **more: Any
) -> RuleVerdict:
    return RuleVerdict("records", "auc", what, status, "at most 0.6", FIGURE, why, **more)


def run_of(*verdicts: RuleVerdict, notes: tuple[str, ...] = ()) -> dict[str, Any]:
    log = json.loads(as_sarif(CheckResult("t", verdicts, notes), POLICY, SOURCES))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def test_every_rule_is_declared_with_help() -> None:
    driver = run_of()["tool"]["driver"]
    assert (driver["name"], [rule["id"] for rule in driver["rules"]]) == (
        "overheard",
        ["no leak", "records", "recording_incomplete"],
    )
    for rule in driver["rules"]:
        assert {"shortDescription", "fullDescription", "help"} <= rule.keys()
        assert len(rule["help"]["text"]) > 40
    assert driver["rules"][1]["fullDescription"]["text"].startswith("q: auc no better than 0.6")


def test_what_does_not_pass_is_a_result_and_points_to_its_rule() -> None:
    results = run_of(
        verdict("pass"), verdict("fail", "beyond"), verdict("inconclusive"), verdict("excused")
    )["results"]
    assert [(one["kind"], one["level"]) for one in results] == [
        ("fail", "error"),
        ("fail", "warning"),
        ("notApplicable", "none"),
    ]
    first = results[0]
    assert (first["ruleId"], first["ruleIndex"]) == ("records", 1)
    assert first["message"]["text"] == (
        "fail: bare; lira; auc; 0.7 (0.65 to 0.75); limit: at most 0.6; beyond"
    )
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "ci/my%20policy.toml"
    assert place["region"] == {"startLine": 7}


def test_an_exception_is_a_suppression_with_its_reason() -> None:
    accepted = Acceptance("inconclusive", "ticket 12", date(2027, 1, 31))
    (result,) = run_of(verdict("excepted", acceptance=accepted))["results"]
    assert (result["kind"], result["level"]) == ("fail", "warning")
    assert result["suppressions"] == [
        {
            "kind": "external",
            "status": "accepted",
            "justification": "accepted until 2027-01-31: ticket 12",
        }
    ]


def test_fingerprints_depend_on_what_is_judged_and_not_on_figures() -> None:
    other = RuleVerdict(
        "records", "auc", "bare; lira", "inconclusive", "at most 0.7", None, "?"
    )
    results = run_of(verdict(), other, verdict(what="bare; loss"))["results"]
    prints = [one["partialFingerprints"]["primaryLocationLineHash"] for one in results]
    assert prints[0] == prints[1] != prints[2]
    assert len(prints[0]) == 32


def test_notes_are_notifications() -> None:
    (invocation,) = run_of(notes=("Careful.",))["invocations"]
    assert invocation == {
        "executionSuccessful": True,
        "toolExecutionNotifications": [{"level": "note", "message": {"text": "Careful."}}],
    }


def test_the_line_of_a_rule_without_one_is_the_first() -> None:
    unknown = RuleVerdict("no leak", "s", "bare", "fail", "no leak")
    (result,) = run_of(unknown)["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_written_without_control_characters(text: str) -> None:
    (result,) = run_of(verdict(why=text, what=text))["results"]
    assert not {"Cc", "Cf", "Cs", "Zl", "Zp"} & set(map(category, result["message"]["text"]))
    assert len(result["message"]["text"]) <= 300


def test_a_name_makes_no_link() -> None:
    (result,) = run_of(verdict(why="[x](http://a)"))["results"]
    assert result["message"]["text"].endswith("[x] (http://a)")
