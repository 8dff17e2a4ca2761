"""A policy is all of its rules, each with its own word on straddling, or the policy's."""

import json

import pytest

from overheard.core.errors import PlanError
from overheard.gate.check import check
from overheard.gate.policy import Policy
from tests.gate.documents import Part, findings, line, row, run

LEAK: Part = {"question": "membership", "score": "membership_auc"}


def policy(*leaks: Part, **changes: object) -> Policy:
    rules = [LEAK | {"name": f"rule {place}"} | leak for place, leak in enumerate(leaks)]
    return Policy.model_validate_json(json.dumps({"leaks": rules} | changes))


def test_all_rules_speak_in_their_order():
    asked = policy(
        {"no_better_than": 0.6}, {"no_better_than": 0.4},
        costs=({"name": "bytes", "bytes_at_most": 1e9, "seeds_at_least": 1},),
        epsilons=({"name": "claims", "arms": ["bare"], "claims_hold": True},),
    )  # fmt: skip
    checked = check(asked, findings(row(0.5, 0.6), epsilon=[line(arm="bare")]))
    assert [(one.rule, one.score, one.status) for one in checked.verdicts] == [
        ("rule 0", "membership_auc", "pass"),
        ("rule 1", "membership_auc", "fail"),
        ("claims", "epsilon", "pass"),
        ("bytes", "bytes", "pass"),
    ]
    assert (checked.status, checked.told) == ("fail", "fail: 1 fail, 3 pass")


def test_a_rule_overrules_the_policy_on_straddling():
    asked = policy(
        {"no_better_than": 0.55}, {"no_better_than": 0.55, "straddles": "pass"},
        straddles="fail", costs=({"name": "b", "accuracy_at_least": 0.6},),
    )  # fmt: skip
    split = [run(accuracy={"0": 0.5}), run(seed=1, accuracy={"0": 0.7})]
    checked = check(asked, findings(row(0.5, 0.6), arms=split))
    assert [one.status for one in checked.verdicts] == ["fail", "pass", "fail"]


def test_earlier_findings_that_no_rule_looks_at_are_refused():
    with pytest.raises(PlanError, match="grows_at_most"):
        check(policy({"no_better_than": 0.6}), findings(row()), findings(row()))


def test_another_subject_and_single_runs_are_told():
    asked, before = policy({"grows_at_most": 1.0}), findings(row())
    assert check(asked, findings(row()), before).notes == ()
    other = findings(row(seeds=1), subject="faces")
    one_run, subject = check(asked, other, before).notes
    assert one_run.startswith("There was one run an arm")
    assert subject == "The earlier findings are of another subject. Then: digits. Now: faces."
