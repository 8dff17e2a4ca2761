"""Every policy fails a recorded run that lacks a message that arrived, by default."""

from datetime import date

import pytest
from pydantic import ValidationError

from overheard.gate.check import check
from overheard.gate.judged_findings import CheckResult
from overheard.gate.policy import CostRule, Policy, PolicyException
from tests.gate.documents import findings, run

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
