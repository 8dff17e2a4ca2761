"""A policy made of a reference: the reference keeps it, a worse run breaks it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import FindingsError
from overheard.findings.document import FindingsDocument
from overheard.gate.check import check
from overheard.gate.reference_policy import (
    ReferencePolicy,
    policy_like,
    policy_text,
    reference_note,
)
from tests.gate.documents import (
    epsilon_row,
    estimate,
    findings,
    refusal,
    run,
    summary_row,
    verdict_row,
)

PATH = Path("earlier/findings.json")


def auc_verdict(verdict: str = "leaks", **changes: Any) -> dict[str, object]:
    p_value = 0.001 if verdict == "leaks" else 0.5
    return verdict_row(verdict, p_value, **({"score": "membership_auc"} | changes))


def reference(*rows: dict[str, object], **changes: Any) -> FindingsDocument:
    changes.setdefault("verdicts", [auc_verdict()])
    return findings(*(rows or (summary_row(0.6, 0.7),)), **changes)


def made(found: FindingsDocument, tolerance: float | None = None) -> ReferencePolicy:
    return policy_like(found, PATH, tolerance)


def status(policy: ReferencePolicy, now: FindingsDocument) -> str:
    return check(policy.policy, now).status


def test_gains_are_limited_by_the_interval_of_the_best_attack_and_the_margin() -> None:
    rows = summary_row(0.6, 0.7), summary_row(0.5, 0.8, attack="loss")
    (rule,) = made(reference(*rows)).policy.leaks
    # A coin gets .5, so that the upper gain is .3; the margin of the verdict is .05.
    assert rule.gain_at_most == pytest.approx(0.35, abs=2e-6)
    assert (rule.question, rule.score, rule.arms) == ("membership", "membership_auc", ("bare",))
    assert rule.must_be_measured == ("lira", "loss")


def test_a_given_tolerance_replaces_the_margin() -> None:
    (rule,) = made(reference(), 0.0).policy.leaks
    assert rule.gain_at_most == pytest.approx(0.2, abs=2e-6)


def test_the_reference_keeps_its_policy_and_a_clearly_worse_run_does_not() -> None:
    policy = made(reference())
    assert status(policy, reference()) == "pass"
    assert status(policy, reference(summary_row(0.7, 0.78))) == "pass"
    assert status(policy, reference(summary_row(0.9, 0.95))) == "fail"


def test_an_attack_that_is_no_longer_measured_does_not_pass() -> None:
    assert status(made(reference()), reference(summary_row(attack="loss"))) == "inconclusive"


def test_an_attack_that_the_reference_lacks_is_limited_too() -> None:
    worse = reference(summary_row(0.6, 0.7), summary_row(0.9, 0.95, attack="new"))
    assert status(made(reference()), worse) == "fail"


def test_what_did_not_leak_must_not_leak() -> None:
    found = reference(verdicts=[auc_verdict("no leak above margin")])
    policy = made(found)
    (rule,) = policy.policy.verdicts
    assert rule.straddles is None
    assert status(policy, found) == "pass"
    assert status(policy, reference(verdicts=[auc_verdict("inconclusive")])) == "inconclusive"
    assert status(policy, reference()) == "fail"


def test_what_was_inconclusive_may_stay_so_and_must_not_leak() -> None:
    found = reference(verdicts=[auc_verdict("inconclusive")])
    policy = made(found)
    assert status(policy, found) == "pass"
    assert status(policy, reference()) == "fail"


def test_attacks_that_the_reference_refused_may_be_refused() -> None:
    found = reference(refusals=[refusal(attack="loss")])
    assert made(found).policy.leaks[0].may_be_refused == ("loss",)
    assert status(made(found), found) == "pass"
    assert status(made(reference()), found) == "inconclusive"


def test_rows_without_an_interval_are_left_out() -> None:
    alone = summary_row(None, None, attack="alone", gain=estimate(None, None, 0.1))
    found = reference(summary_row(0.6, 0.7), alone)
    (rule,) = made(found).policy.leaks
    assert rule.attacks == ("lira",)
    assert status(made(found), found) == "pass"


def test_guaranteed_epsilon_must_not_grow_and_claims_must_hold() -> None:
    runs = [run(), run("noisy")]
    found = reference(arms=runs, epsilon=[epsilon_row()])
    policy = made(found)
    assert [rule.guaranteed_at_most for rule in policy.policy.epsilons] == [2.0, None]
    assert status(policy, found) == "pass"
    grown = reference(arms=runs, epsilon=[epsilon_row(ceiling=3.0)])
    assert status(policy, grown) == "fail"


def test_an_infinite_epsilon_is_no_limit() -> None:
    found = reference(arms=[run(), run("noisy")], epsilon=[epsilon_row("flawed")])
    assert made(found).policy.epsilons == ()


def test_accuracy_must_not_fall_by_more_than_the_tolerance() -> None:
    policy = made(reference(arms=[run(accuracy={"1": 0.9}), run(seed=1, accuracy={"1": 0.8})]))
    (rule,) = policy.policy.costs
    assert rule.accuracy_at_least == pytest.approx(0.78, abs=2e-6)
    for accuracy, expected in ((0.78, "pass"), (0.7, "fail")):
        runs = [run(seed=seed, accuracy={"1": accuracy}) for seed in (0, 1)]
        assert status(policy, reference(arms=runs)) == expected


def test_a_reference_in_which_nothing_was_checked_makes_no_policy() -> None:
    rows = [auc_verdict("unchecked"), auc_verdict("unmeasured", question="shift")]
    with pytest.raises(FindingsError, match=r"no policy: .*truth\.json.*\[\[verdicts\]\]"):
        made(reference(verdicts=rows, epsilon=[epsilon_row()], arms=[run(), run("noisy")]))


def test_a_threat_without_ground_truth_gets_no_rule_and_is_named() -> None:
    rows = [auc_verdict(), auc_verdict("unchecked", question="shift")]
    policy = made(reference(verdicts=rows))
    assert policy.policy.verdicts == ()
    assert policy.warnings == (
        "Without a rule, as the reference has no ground truth for it: "
        "shift, bare, server, clients.",
    )
    assert f"# {policy.warnings[0]}\n" in policy_text(policy)


def test_a_threat_that_no_attack_could_ask_is_excused_until_it_leaks() -> None:
    rows = [auc_verdict(), auc_verdict("unmeasured", question="shift")]
    policy = made(reference(verdicts=rows))
    assert status(policy, reference(verdicts=rows)) == "pass"
    leaks = [rows[0], auc_verdict(question="shift")]
    assert status(policy, reference(verdicts=leaks)) == "fail"


def test_a_limit_that_no_attack_can_break_ends_at_a_perfect_claim_and_says_so() -> None:
    # A coin gets .5, so that a perfect attack gains .5; Student's interval ends at .6.
    found = reference(summary_row(0.7, 1.1), summary_row(0.6, 1.2, attack="loss"))
    policy = made(found)
    (rule,) = policy.policy.leaks
    assert rule.gain_at_most == 0.5
    assert "gain 0.4 (0.2 to 0.5) by" in policy.reasons[rule.name]
    assert "cannot fail: a perfect attack gains 0.5" in policy_text(policy)
    (warning,) = policy.warnings
    assert warning.startswith("1 of the rules on gains cannot fail")
    assert rule.name in warning
    assert made(reference()).warnings == ()


def test_the_limit_of_an_error_ends_where_no_error_is_left() -> None:
    # Guessing errs by .8: the upper gain of 1.1 is cut to .8.
    row = summary_row(
        *(0.0, 0.3),
        score="l1",
        better="lower",
        blinds={"uniform": 0.8},
        gain=estimate(0.3, 1.1),
    )
    verdict = auc_verdict(score="l1", margins={"l1": 0.1})
    (rule,) = made(reference(row, verdicts=[verdict])).policy.leaks
    assert rule.gain_at_most == 0.8


def test_refuses_findings_without_verdicts_or_with_names_that_no_policy_has() -> None:
    with pytest.raises(FindingsError, match="make no policy"):
        made(findings(summary_row()))
    with pytest.raises(FindingsError, match="make no policy"):
        made(findings(verdicts=[], arms=[]))
    strange = reference(verdicts=[auc_verdict("inconclusive", observers=["a\nb"])])
    with pytest.raises(FindingsError, match="make no policy"):
        made(strange)


def test_another_subject_is_told() -> None:
    assert reference_note(reference(), reference()) == ""
    assert "Now: faces." in reference_note(reference(), reference(subject="faces"))


NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=120)

ENDS = st.tuples(st.floats(0.5, 1), st.floats(0.5, 1)).map(sorted)


@given(st.lists(st.tuples(NAMES, ENDS), min_size=1, max_size=4, unique_by=lambda one: one[0]))
def test_any_findings_keep_the_policy_that_is_made_of_them(
    arms: list[tuple[str, list[float]]],
) -> None:
    found = findings(
        *(summary_row(low, high, arm=arm) for arm, (low, high) in arms),
        arms=[run(arm) for arm, _ in arms],
        verdicts=[auc_verdict("inconclusive", arm=arm) for arm, _ in arms],
    )
    assert check(made(found).policy, found).status == "pass"


def test_a_reference_that_lacks_messages_is_told_that_it_fails_its_own_policy() -> None:
    lost = {"party": "client/3", "rounds": [0], "is_unrecorded": True, "reason": "NaN"}
    arms = [run(unrecorded=1, lost_replies=[lost])]
    lacking = reference(arms=arms, is_recorded=True)
    policy = made(lacking)
    assert policy.policy.recording_incomplete
    (warning,) = policy.warnings
    assert warning.startswith("The reference itself fails the rule recording_incomplete: 1 of")
    assert f"# {warning}\n" in policy_text(policy)
    assert "\nrecording_incomplete = true\n" in policy_text(policy)
    assert status(policy, lacking) == "fail"
    assert not made(reference(arms=[run()], is_recorded=True)).warnings
