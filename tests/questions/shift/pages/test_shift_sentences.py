"""Sentences state how well shifts are detected, beside uninformed guesses."""

from dataclasses import replace

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.report.defense_effects import describe_defense_effects
from overheard.report.threat_sentences import threat_sentences
from tests.questions.shift.pages.test_detection_tables import with_exact_controls
from tests.report.shift_audits import shift_audit, shift_findings


def words(audit: Audit) -> str:
    (arm, *_) = with_verdicts(audit).arm_results
    return " ".join(threat_sentences(arm.threat_results[0])).replace("\u00a0", " ")


def test_states_alarms_in_both_kinds_of_controls() -> None:
    findings = with_exact_controls(shift_findings("none", "tracker", 9.0, runs=20))
    said = words(shift_audit(findings))
    assert " of controls (95 % interval " in said
    assert " of exact controls (95 % interval " in said
    assert "not calibrated" not in said


def uncalibrated(finding: Finding) -> Finding:
    """Return the finding of an attack that gives no alarm, as it cannot keep its rate."""
    assert finding.claimed.timeline is not None
    timeline = replace(finding.claimed.timeline, threshold=None, alarm=None)
    return replace(finding, claimed=replace(finding.claimed, timeline=timeline))


def test_states_how_often_an_attack_is_not_calibrated() -> None:
    findings = shift_findings("none", "tracker", 9.0, runs=20)
    silent = [uncalibrated(one) if one.cell.seed < 5 else one for one in findings]
    said = words(shift_audit(silent))
    assert "In 25.0 % of runs it is not calibrated" in said
    nowhere = [uncalibrated(one) for one in findings]
    said = words(shift_audit(nowhere))
    assert "In 100.0 % of runs it is not calibrated" in said
    assert "states no threshold" not in said


def test_an_undetectable_shift_is_no_leak() -> None:
    findings = shift_findings("none", "trend", 0.0, runs=12, has_alarm=False)
    audit = shift_audit(findings)
    assert with_verdicts(audit).arm_results[0].threat_results[0].verdict != "leaks"
    said = words(audit)
    assert "a shift in the other clients' data" in said
    assert "the best attack is correct in" in said
    assert "too few controls" in said
    assert "The attack states no threshold, so it raises no alarm." in said
    assert "which classes rose" not in said


def test_without_a_control_run_nothing_is_measured() -> None:
    audit = shift_audit(shift_findings("none", "tracker", 9.0, runs=3, has_controls=False))
    (arm,) = with_verdicts(audit).arm_results
    assert arm.threat_results[0].verdict == "unmeasured"
    (said,) = threat_sentences(arm.threat_results[0])
    assert "was not measured: that requires runs with a shift and a control run" in said
    assert "Not measured does not mean that there is no leak." in said


def test_control_runs_do_not_count_for_an_arms_accuracy() -> None:
    # Planned runs reach 95 %, controls 30 %.
    (arm,) = with_verdicts(
        shift_audit(shift_findings("none", "tracker", 9.0, runs=2))
    ).arm_results
    assert arm.accuracy == 0.95
    assert len(arm.runs) == 2


@pytest.mark.slow
def test_states_the_effect_of_a_defense_and_its_cost() -> None:
    findings = [
        *shift_findings("none", "tracker", 9.0, runs=20),
        *shift_findings("local DP", "tracker", 0.0, runs=20),
        *shift_findings("central DP", "tracker", 9.0, runs=2, has_controls=False),
    ]
    local, central = describe_defense_effects(with_verdicts(shift_audit(findings)).arm_results)
    assert local.cost.startswith("costs 5.0 percentage points of accuracy")
    assert "shift · helps (shifts ranked above controls 100" in local.effects[0]
    assert "not measured, since there is no control run" in central.effects[0]
