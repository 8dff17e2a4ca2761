"""An audit stores and shows what the doctor says of its differential privacy."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from overheard.archive.manifest import DefenseRecord, read_manifest, write_manifest
from overheard.auditing.doctor_targets import plan_evidence, recording_evidence
from overheard.auditing.folder import AuditFolder
from overheard.auditing.recording import check_recording
from overheard.auditing.threat_results import with_verdicts
from overheard.core.mechanism import Mechanism
from overheard.defenses.dp_sgd import DpSgd
from overheard.defenses.local_dp import LocalDp
from overheard.doctor.recorded.diagnose import diagnose_run
from overheard.findings.audit import Audit
from overheard.findings.document import read_findings
from overheard.findings.privacy.epsilon_rows import RunCriticism
from overheard.plans.plan import ArmPlan
from overheard.plans.recording_plan import RecordingPlan
from overheard.report.exports import as_json
from overheard.report.page import render_page
from overheard.report.release.left_out import ReleaseSettings
from overheard.report.release.released_audit import released_audit
from overheard.report.release.released_findings import release_findings
from overheard.report.release.write import page_parts
from tests.auditing.conftest import audit_here, inputs_for
from tests.auditing.plans import NO_DEFENSE, TINY, replace_tables
from tests.report.shift_audits import shift_audit, shift_findings

FAULT = RunCriticism(
    "noise-repeats",
    "critical",
    "the same noise in several rounds",
    "9 of 9 pairs have the same noise.",
    "LocalDp: client/7, round 1",
    "left of it: 0.001",
    "Draw it anew.",
    "a page",
)

MILD = replace(FAULT, id="delta-too-large", severity="theoretical", title="delta is large")


def test_a_recording_that_states_noise_it_lacks_is_found_out(recording: Path, tmp_path: Path):
    """The clients of this run sent their updates without noise, and state a lot of it."""
    folder = shutil.copytree(recording, tmp_path / "recording")
    stated = Mechanism(1.0, 1.0, 1e-5, "client", "client")
    record = DefenseRecord("LocalDp", "LocalDp()", "client", "each client", stated)
    write_manifest(folder / "transcript", replace(read_manifest(folder), defenses=(record,)))
    arms = (ArmPlan(name="noisy", defenses=(LocalDp(noise_multiplier=1.0),)),)
    plan = replace_tables(TINY, arms=arms)
    checked = check_recording(plan, inputs_for(plan), folder)
    evidence = recording_evidence(folder)
    found = {one.rule.id for one in diagnose_run(evidence).alarms}
    assert "noise-too-small" in found
    run = checked.with_criticisms(checked.open_run())
    assert {one.id for one in run.record.criticisms if one.severity == "critical"} == found


def test_an_audit_of_a_simulation_says_what_the_doctor_says_of_its_messages(tmp_path: Path):
    arms = (
        ArmPlan(name="local", defenses=(LocalDp(),)),
        ArmPlan(name="clip alone", defenses=(LocalDp(noise_multiplier=0.0),)),
        ArmPlan(name="records", defenses=(DpSgd(batches=2),)),
    )
    audit = audit_here(replace_tables(TINY, arms=arms), tmp_path)
    found = dict[str, set[str]]()
    for run in audit.arms:
        if not run.is_control and run.arm != NO_DEFENSE.name:
            folder = AuditFolder(tmp_path).run_path(run.arm, run.seed)
            diagnosis = diagnose_run(recording_evidence(folder))
            found[run.arm] = {one.id for one in run.criticisms}
            assert {one.rule.id for one in diagnosis.criticisms} == found[run.arm]
    # Clients that promise something send no exact loss; they do send their counts.
    assert found == {"local": set(), "clip alone": set(), "records": {"counts-in-clear"}}


def test_what_a_plan_states_of_a_recording_counts(recording: Path):
    plan = replace_tables(TINY, recording=RecordingPlan(tuning_runs=20))
    assert recording_evidence(recording, plan).tuning_runs == 20


def test_arms_without_noise_have_nothing_to_look_at():
    for evidence in plan_evidence(TINY):
        found = diagnose_run(evidence)
        assert (found.criticisms, found.passed, found.unseen) == ((), (), ())


def audit() -> Audit:
    made = shift_audit(shift_findings("no defense", "shift", 2.0))
    runs = tuple(replace(run, criticisms=(FAULT, MILD)) for run in made.arms)
    return with_verdicts(replace(made, arms=runs))


def test_critical_faults_come_first_on_the_page_and_the_others_in_the_table():
    page = render_page(audit())
    first = page.index("9 of 9 pairs have the same noise")
    assert page.index("What leaks, and to whom") < first < page.index("How bad, compared")
    assert "Draw it anew." in page[first : first + 200]
    assert "delta is large" not in page[: page.index("How bad, compared")]
    assert "delta is large" in page


def test_a_release_keeps_the_rule_and_neither_places_nor_figures(tmp_path: Path):
    path = tmp_path / "findings.json"
    path.write_text(as_json(audit()))
    document = read_findings(path)
    assert {one.id for one in document.doctor} == {FAULT.id, MILD.id}
    released = release_findings(document, (), ReleaseSettings()).document
    kept = json.dumps([one.model_dump() for one in released.doctor])
    assert FAULT.title in kept
    assert "client/7" not in kept
    assert "9 of 9" not in kept
    page = render_page(released_audit(released), "", page_parts(released, ()))
    assert FAULT.title in page
