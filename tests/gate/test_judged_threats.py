"""Rules on verdicts: p-values are adjusted for the number of verdicts that a policy covers."""

import json

import pytest

from overheard.gate.check import check
from overheard.gate.judged_threats import threat_verdicts
from overheard.gate.policy import Policy, VerdictRule
from overheard.gate.verdict import RuleVerdict, Status
from tests.gate.documents import JsonObject, findings, run, verdict_row


def rule(**changes: object) -> VerdictRule:
    return VerdictRule.model_validate_json(json.dumps({"name": "r"} | changes))


def judged(*rows: JsonObject, rules: tuple[VerdictRule, ...] = (rule(),)) -> list[RuleVerdict]:
    arms = [run(arm) for arm in dict.fromkeys(["bare", *(str(row["arm"]) for row in rows)])]
    now = findings(verdicts=list(rows), arms=arms)
    return list(threat_verdicts(rules, now, "inconclusive"))


@pytest.mark.parametrize(
    ("verdict", "p_value", "status"),
    [
        ("leaks", 0.02, "fail"),
        ("no leak above margin", 0.3, "pass"),
        ("nothing to read", None, "pass"),
        ("inconclusive", 0.3, "inconclusive"),
        ("not enough to judge", None, "inconclusive"),
        ("unmeasured", None, "inconclusive"),
        ("unchecked", None, "inconclusive"),
    ],
)
def test_each_verdict_has_a_status(verdict: str, p_value: float | None, status: Status) -> None:
    (found,) = judged(verdict_row(verdict, p_value))
    assert found.status == status
    assert found.subject == "bare; server; about clients"


def leaks(p_value: float, question: str) -> JsonObject:
    return verdict_row("leaks", p_value, question=question)


def test_p_values_are_adjusted_for_all_covered_verdicts() -> None:
    # Holm: 0.01 times 3 = 0.03 is above 0.025; then 0.02 times 2 = 0.04.
    rows = [leaks(0.01, "membership"), leaks(0.02, "shift"), verdict_row("inconclusive", 0.5)]
    rows[2]["question"] = "identity"
    found = judged(*rows)
    assert [one.status for one in found] == ["inconclusive"] * 3
    assert found[0].why == "leaks by itself; p = 0.03 among 3 tests"
    # A rule that covers two of them: 0.01 times 2 = 0.02, then 0.02 times 1.
    two = judged(
        *rows[:2],
        verdict_row("inconclusive", 0.5, arm="noise"),
        rules=(rule(arms=["bare"]),),
    )
    assert [one.status for one in two] == ["fail", "fail"]
    assert two[0].why == "leaks: p = 0.02 among 2 tests"


def test_a_small_p_value_without_a_gain_does_not_help_the_others() -> None:
    # Were 0.001 the smallest of two, then 0.02 would not be multiplied.
    rows = [leaks(0.02, "membership"), verdict_row("inconclusive", 0.001, question="shift")]
    assert judged(*rows)[0].why == "leaks by itself; p = 0.04 among 2 tests"


def test_verdicts_without_a_test_do_not_count() -> None:
    rows = [leaks(0.02, "membership"), verdict_row("unmeasured", None, question="shift")]
    assert judged(*rows)[0].status == "fail"


def test_two_rules_share_the_adjustment() -> None:
    rows = [leaks(0.02, "membership"), leaks(0.02, "shift")]
    apart = (rule(name="a", question="membership"), rule(name="b", question="shift"))
    assert [one.status for one in judged(*rows, rules=apart)] == ["inconclusive"] * 2
    (alone,) = judged(*rows, rules=apart[:1])
    assert alone.status == "fail"


def test_what_is_missing_never_passes() -> None:
    (found,) = judged(rules=(rule(),))
    assert (found.status, found.subject) == ("inconclusive", "bare")
    missing = judged(verdict_row(), rules=(rule(arms=["noise"]),))
    assert [(one.status, one.why) for one in missing] == [
        ("inconclusive", "no such arm; arms: bare")
    ]
    (old,) = threat_verdicts((rule(),), findings(), "pass")
    assert old.status == "inconclusive"


def test_an_arm_without_a_verdict_is_listed() -> None:
    content = findings(verdicts=[verdict_row("nothing to read")], arms=[run(), run("noise")])
    found = threat_verdicts((rule(),), content, "inconclusive")
    assert [one.status for one in found] == ["pass", "inconclusive"]


def test_straddles_decides_what_is_inconclusive() -> None:
    row = verdict_row("inconclusive", 0.3)
    assert judged(row, rules=(rule(straddles="pass"),))[0].status == "pass"
    assert judged(row, rules=(rule(straddles="fail"),))[0].status == "fail"


@pytest.mark.parametrize(
    ("verdict", "status"), [("unchecked", "inconclusive"), ("unmeasured", "excused")]
)
def test_what_was_not_tested_never_passes(verdict: str, status: Status) -> None:
    row = verdict_row(verdict, None)
    assert judged(row, rules=(rule(straddles="pass"),))[0].status == status
    assert judged(row, rules=(rule(straddles="fail"),))[0].status == "fail"
    policy = Policy.model_validate_json(
        json.dumps({"verdicts": [{"name": "no leak", "straddles": "pass"}]})
    )
    assert check(policy, findings(verdicts=[row])).status == "inconclusive"


def test_a_policy_of_verdicts_is_checked() -> None:
    policy = Policy.model_validate_json(json.dumps({"verdicts": [{"name": "no leak"}]}))
    checked = check(policy, findings(verdicts=[verdict_row()]))
    assert checked.summary == "fail: 1 fail"
