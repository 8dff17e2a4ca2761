"""An exception accepts what does not pass, until its last day, and then fails."""

from datetime import date
from pathlib import Path

import pytest

from overheard.core.errors import PlanError
from overheard.gate.check import check
from overheard.gate.judged_findings import CheckResult
from overheard.gate.policy import Policy, read_policy
from overheard.plans.strict_model import parse_toml
from tests.gate.documents import findings, summary_row, verdict_row

RULE = """
[[leaks]]
name = "records"
question = "membership"
score = "membership_auc"
no_better_than = 0.6
"""

TODAY = date(2026, 11, 23)


def policy(*lines: str, expires: str = "2027-01-31") -> Policy:
    entry = ["[[exceptions]]", 'rule = "records"', 'reason = "ticket 12"', *lines]
    text = "\n".join([RULE, *entry, f"expires = {expires}"])
    return parse_toml(Policy, text, "policy.toml", "policy", has_dates=True)


def judged(rules: Policy, *rows: dict[str, object], **changes: object) -> CheckResult:
    return check(rules, findings(*rows, **changes), today=TODAY)


def test_a_failing_verdict_is_accepted_with_its_reason() -> None:
    result = judged(policy(), summary_row(0.7, 0.8))
    (verdict,) = result.verdicts
    assert verdict.status == "excepted"
    assert verdict.why.startswith("fail, accepted until 2027-01-31: ticket 12; ")
    assert (verdict.acceptance.status, verdict.acceptance.reason) == ("fail", "ticket 12")
    assert (result.status, result.notes) == ("pass", ())
    assert result.summary == "pass: 1 excepted"


@pytest.mark.parametrize(
    ("line", "statuses"),
    [
        ('arms = ["bare"]', ["excepted", "fail"]),
        ('attacks = ["lira"]', ["excepted", "excepted"]),
        ('attacks = ["loss"]', ["fail", "fail"]),
        ('observers = ["server"]', ["excepted", "excepted"]),
        ('observers = ["client/1", "server"]', ["fail", "fail"]),
    ],
)
def test_arms_attacks_and_observers_restrict_it(line: str, statuses: list[str]) -> None:
    rows = (summary_row(0.7, 0.8), summary_row(0.7, 0.8, arm="noisy"))
    assert [one.status for one in judged(policy(line), *rows).verdicts] == statuses


def test_it_covers_no_other_rule() -> None:
    other = Policy.model_validate_json(
        '{"verdicts": [{"name": "no leak"}, {"name": "none"}], "exceptions":'
        ' [{"rule": "none", "reason": "known", "expires": "2027-01-31"}]}'
    )
    result = judged(other, verdicts=[verdict_row()])
    assert [(one.rule, one.status) for one in result.verdicts] == [
        ("no leak", "fail"),
        ("none", "excepted"),
    ]


def test_it_holds_on_its_last_day_and_fails_on_the_next() -> None:
    row = summary_row(0.7, 0.8)
    last = judged(policy(expires="2026-11-23"), row)
    assert last.status == "pass"
    assert last.notes == ("The exception for “records” until 2026-11-23 expires today.",)
    after = judged(policy(expires="2026-11-22"), row)
    assert [one.status for one in after.verdicts] == ["fail", "fail"]
    assert after.verdicts[1].subject == "exception 1"
    assert "has expired: renew it or remove it" in after.verdicts[1].why
    assert "ticket 12" in after.verdicts[1].why


def test_an_expired_exception_fails_even_if_nothing_needs_it() -> None:
    result = judged(policy(expires="2026-11-22"), summary_row(0.5, 0.6))
    assert [one.status for one in result.verdicts] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("expires", "told"),
    [("2026-11-24", "in 1 day"), ("2026-12-23", "in 30 days"), ("2026-12-24", "")],
)
def test_an_exception_that_expires_soon_is_told(expires: str, told: str) -> None:
    notes = judged(policy(expires=expires), summary_row(0.7, 0.8)).notes
    assert [told in note for note in notes] == ([True] if told else [])


def test_an_exception_that_nothing_needs_is_told() -> None:
    (note,) = judged(policy(), summary_row(0.5, 0.6)).notes
    assert note.endswith("is not needed: remove it.")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('rule = "records"\nreason = "r"', "exceptions.0.expires: Field required"),
        ('rule = "records"\nexpires = 2027-01-31', "exceptions.0.reason: Field required"),
        ('rule = "records"\nreason = " "\nexpires = 2027-01-31', "exceptions.0.reason"),
        ('rule = "recods"\nreason = "r"\nexpires = 2027-01-31', "rules: records"),
        ('rule = "records"\nreason = "r"\nexpires = 2027-01-31T10:00:00', "contain times"),
    ],
)
def test_mistakes_in_an_exception_are_told(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(f"{RULE}[[exceptions]]\n{line}\n")
    with pytest.raises(PlanError, match=complaint):
        read_policy(path)
