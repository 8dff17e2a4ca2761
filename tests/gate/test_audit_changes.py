"""What differs between two audits is told, and whether intervals explain it."""

from collections.abc import Sequence
from typing import Any

from overheard.findings.document import FindingsDocument
from overheard.gate.audit_changes import AuditChange, compare_audits
from tests.gate.documents import epsilon_row, findings, run, summary_row, verdict_row

SUBJECT = "bare; server; lira; membership; clients; membership_auc; rounds 0-1"


def audit(low: float = 0.6, high: float = 0.7, **changes: Any) -> FindingsDocument:
    changes.setdefault("verdicts", [verdict_row(score="membership_auc")])
    rows = (summary_row(low, high), summary_row(low, high, score="other"))
    return findings(*rows, **changes)


def changed(before: FindingsDocument, after: FindingsDocument) -> Sequence[AuditChange]:
    return compare_audits(before, after).changes


def test_an_audit_does_not_differ_from_itself() -> None:
    found = compare_audits(audit(), audit())
    assert (found.changes, found.notes, found.compared) == ((), (), 2)


def test_the_judged_score_is_compared_by_intervals() -> None:
    (near,) = changed(audit(0.6, 0.7), audit(0.65, 0.75))
    assert (near.kind, near.subject, near.remark) == ("score", SUBJECT, "within the intervals")
    assert (near.before, near.after) == ("0.65 (0.6 to 0.7)", "0.7 (0.65 to 0.75)")
    (far,) = changed(audit(0.6, 0.7), audit(0.8, 0.9))
    assert far.remark == "beyond the intervals"
    # At least .8 - .7, at most .9 - .6.
    assert abs(far.difference.low - 0.1) < 1e-9
    assert abs(far.difference.high - 0.3) < 1e-9


def test_a_changed_verdict_and_a_new_question_are_told() -> None:
    after = audit(
        verdicts=[
            verdict_row("inconclusive", score="membership_auc"),
            verdict_row(question="shift", score="days"),
        ]
    )
    found = compare_audits(audit(), after)
    assert [(one.before, one.after, one.remark) for one in found.changes] == [
        ("leaks", "inconclusive", ""),
        ("absent", "leaks", "new"),
    ]
    assert found.summary.startswith("2 verdicts changed, 0 scores beyond the intervals")
    (back, gone) = changed(after, audit())
    assert (back.after, gone.after, gone.remark) == ("leaks", "absent", "removed")


def test_a_new_attack_is_told() -> None:
    after = findings(
        summary_row(0.6, 0.7),
        summary_row(0.6, 0.7, attack="loss"),
        verdicts=[verdict_row(score="membership_auc")],
    )
    (change,) = changed(audit(), after)
    assert (change.remark, change.before) == ("new", "absent")
    assert "loss" in change.subject


def test_epsilon_accuracy_versions_and_settings_of_the_plan_are_compared() -> None:
    before = audit(
        epsilon=[epsilon_row()],
        arms=[run(accuracy={"1": 0.9}), run(seed=1, accuracy={"1": 0.92})],
        plan='seeds = [0]\n[training]\nrounds = 5\n[[threats]]\nobservers = ["server"]\n',
        versions={"torch": "1"},
    )
    after = audit(
        epsilon=[epsilon_row("violated")],
        arms=[run(accuracy={"1": 0.8}), run(seed=1, accuracy={"1": 0.82})],
        plan='seeds = [0]\n[training]\nrounds = 9\n[[threats]]\nobservers = ["client/1"]\n',
        versions={"torch": "2"},
    )
    told = {(one.kind, one.subject): (one.before, one.after) for one in changed(before, after)}
    assert told == {
        ("epsilon", "noisy; LocalDp; server"): (
            "holds, at most 2, proven 0.5",
            "violated, at most 2, proven 2.5",
        ),
        ("accuracy", "bare"): ("0.91 (0.9 to 0.92)", "0.81 (0.8 to 0.82)"),
        ("plan", "training.rounds"): ("5", "9"),
        ("plan", "threats.0.observers"): ("['server']", "['client/1']"),
        ("version", "torch"): ("1", "2"),
    }


def test_a_hostile_plan_does_no_harm() -> None:
    deep = "a = " + "[" * 50 + "{b = 1}" + "]" * 50
    (change,) = changed(audit(), audit(plan=deep))
    assert change.kind == "plan"
    (broken,) = changed(audit(), audit(plan="["))
    assert (broken.subject, broken.after) == ("plan", "not readable")


def test_other_subjects_are_told() -> None:
    (note,) = compare_audits(audit(subject="faces"), findings(summary_row())).notes
    assert note.startswith("The audits describe different subjects. First: faces.")


def test_rounds_are_told_by_their_ends() -> None:
    before = findings(verdicts=[])
    after = findings(summary_row(rounds=[4, 0, 1, 2]), verdicts=[verdict_row()])
    changes = changed(before, after)
    assert changes[-1].subject.endswith("rounds 0-2, 4")
