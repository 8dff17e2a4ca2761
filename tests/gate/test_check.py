"""A policy combines its rules, and the one on the recording."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from pydantic import ValidationError

import overheard
from overheard.core.errors import FindingsError, PlanError
from overheard.findings.audit import Audit
from overheard.findings.document import read_findings
from overheard.gate.check import check
from overheard.gate.judged_findings import CheckResult
from overheard.gate.policy import CostRule, Policy, PolicyException
from overheard.report.exports import as_json
from tests.gate.documents import JsonObject, epsilon_row, findings, run, summary_row

LEAK: JsonObject = {"question": "membership", "score": "membership_auc"}


def policy(*leaks: JsonObject, **changes: object) -> Policy:
    rules = [LEAK | {"name": f"rule {place}"} | leak for place, leak in enumerate(leaks)]
    return Policy.model_validate_json(json.dumps({"leaks": rules} | changes))


def test_verdicts_follow_the_order_of_rules():
    asked = policy(
        {"no_better_than": 0.6}, {"no_better_than": 0.4},
        costs=({"name": "bytes", "bytes_at_most": 1e9, "seeds_at_least": 1},),
        epsilons=({"name": "claims", "arms": ["bare"], "claims_hold": True},),
    )  # fmt: skip
    checked = check(asked, findings(summary_row(0.5, 0.6), epsilon=[epsilon_row(arm="bare")]))
    assert [(one.rule, one.score, one.status) for one in checked.verdicts] == [
        ("rule 0", "membership_auc", "pass"),
        ("rule 1", "membership_auc", "fail"),
        ("claims", "epsilon", "pass"),
        ("bytes", "bytes", "pass"),
    ]
    assert (checked.status, checked.summary) == ("fail", "fail: 1 fail, 3 pass")


def test_a_rule_overrides_the_overlap_status_of_the_policy():
    asked = policy(
        {"no_better_than": 0.55}, {"no_better_than": 0.55, "straddles": "pass"},
        straddles="fail", costs=({"name": "b", "accuracy_at_least": 0.6},),
    )  # fmt: skip
    split = [run(accuracy={"0": 0.5}), run(seed=1, accuracy={"0": 0.7})]
    checked = check(asked, findings(summary_row(0.5, 0.6), arms=split))
    assert [one.status for one in checked.verdicts] == ["fail", "pass", "fail"]


def test_refuses_unused_earlier_findings():
    with pytest.raises(PlanError, match="grows_at_most"):
        check(policy({"no_better_than": 0.6}), findings(summary_row()), findings(summary_row()))


def test_notes_another_subject_and_single_runs():
    asked, before = policy({"grows_at_most": 1.0}), findings(summary_row())
    assert check(asked, findings(summary_row()), before).notes == ()
    other = findings(summary_row(seeds=1), subject="faces")
    one_run, subject = check(asked, other, before).notes
    assert one_run.startswith("Intervals from fewer than 5 runs cover")
    assert subject == (
        "The earlier findings describe another subject. Earlier: digits. Now: faces."
    )


SHARES_STAY_UNREAD = """
[[leaks]]
name = "shares stay unread"
question = "label_shares"
score = "l1"
gain_at_most = 0.1
"""


def test_an_audit_and_its_file_get_the_same_verdicts(small: Audit, tmp_path: Path):
    policy, file = tmp_path / "policy.toml", tmp_path / "findings.json"
    policy.write_text(SHARES_STAY_UNREAD)
    file.write_text(as_json(small), encoding="utf-8")
    checked = overheard.check(policy, small)
    # Without a defense the gains are 0.8 and 0.56, too few to judge. With noise they are 0.
    assert [(one.subject.split(";")[0], one.status) for one in checked.verdicts] == [
        ("none", "inconclusive"),
        ("noise", "pass"),
    ]
    assert overheard.check(policy, file) == checked
    assert overheard.check(policy, read_findings(file)) == checked


def test_refuses_an_audit_with_two_runs_of_one_seed(small: Audit):
    twice = replace(small, arms=(*small.arms, small.arms[0]))
    with pytest.raises(FindingsError, match="two runs with the same arm and seed"):
        check(policy({"no_better_than": 0.6}), twice)


def test_refuses_files_that_are_no_policy_or_findings(small: Audit, tmp_path: Path):
    with pytest.raises(PlanError, match="cannot be read"):
        check(tmp_path / "missing.toml", small)
    with pytest.raises(FindingsError, match=r"missing\.json"):
        check(policy({"no_better_than": 0.6}), tmp_path / "missing.json")


def test_the_notebook_table_escapes_names():
    checked = check(policy({"no_better_than": 0.6}), findings(summary_row(attack="<i>\x1b")))
    page = checked._repr_html_()
    assert "pass: 1 pass" in page
    assert "&lt;i&gt;\\x1b" in page


COSTS = (CostRule(name="cheap", bytes_at_most=9e9, seeds_at_least=1),)
LOST = [
    {"party": "client/3", "rounds": [0, 1], "is_unrecorded": True, "reason": "NaN"},
    {"party": "client/4", "rounds": [0], "is_unrecorded": False, "reason": "late"},
]


def judged(policy: Policy, *, is_recorded: bool = True, unrecorded: int = 2) -> CheckResult:
    arms = [
        run(missing=1, unrecorded=unrecorded, lost_replies=LOST if unrecorded else LOST[1:])
    ]
    return check(policy, findings(arms=arms, is_recorded=is_recorded), today=date(2026, 1, 1))


def test_an_unrecorded_message_fails_with_its_client_and_reason() -> None:
    found = judged(Policy(costs=COSTS))
    verdict = found.verdicts[-1]
    assert (found.status, verdict.rule, verdict.status) == (
        *("fail", "recording_incomplete", "fail"),
    )
    assert verdict.why == "2 arrived and not recorded of client/3: NaN"


def test_a_missing_reply_alone_and_a_simulation_pass() -> None:
    assert judged(Policy(costs=COSTS), unrecorded=0).status == "pass"
    simulated = judged(Policy(costs=COSTS), is_recorded=False)
    assert [one.rule for one in simulated.verdicts] == ["cheap"]


def test_a_policy_turns_the_rule_off_or_accepts_it_until_a_date() -> None:
    off = judged(Policy(costs=COSTS, recording_incomplete=False))
    assert [one.rule for one in off.verdicts] == ["cheap"]
    accepted = PolicyException(
        rule="recording_incomplete", reason="a test client", expires=date(2026, 2, 1)
    )
    found = judged(Policy(costs=COSTS, exceptions=(accepted,)))
    assert (found.status, found.verdicts[-1].status) == ("pass", "excepted")


def test_the_rule_alone_is_no_policy_and_no_other_rule_has_its_name() -> None:
    with pytest.raises(ValidationError, match="no rules"):
        Policy()
    with pytest.raises(ValidationError, match="recording_incomplete"):
        Policy(costs=(CostRule(name="recording_incomplete", bytes_at_most=1.0),))
