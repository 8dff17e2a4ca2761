"""Plans and recordings that the doctor looks at by themselves, without an audit."""

from pathlib import Path

from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript
from overheard.archive.requested_rounds import count_requested_rounds
from overheard.archive.run_end import has_ended
from overheard.auditing.doctor_evidence import arm_evidence, recorded_evidence
from overheard.auditing.run_records import (
    planned_defenses,
    planned_run,
    recorded_defenses,
    recorded_run,
)
from overheard.doctor.recorded.evidence import RunEvidence
from overheard.plans.plan import Plan
from overheard.plans.recording_plan import RecordingPlan, complete_manifest


def plan_evidence(plan: Plan) -> tuple[RunEvidence, ...]:
    """Return what a plan states of each of its arms."""
    return tuple(
        arm_evidence(plan, arm, planned_defenses(plan, arm), planned_run(plan, arm))
        for arm in plan.arms
    )


def recording_evidence(folder: Path, plan: Plan | None = None) -> RunEvidence:
    """Return what a recording states, with its messages.

    Args:
        folder: the folder of the run or of its transcript.
        plan: a plan that states more of the run in its table `[recording]`; None = none.

    Raises:
        TranscriptError: if there is no transcript, or it is damaged.
        PlanError: if the plan contradicts the recording.

    """
    stated = RecordingPlan() if plan is None else plan.recording
    manifest = complete_manifest(read_manifest(folder), stated, folder)
    transcript = open_transcript(folder)
    asked = count_requested_rounds(transcript, manifest.parties)
    run = recorded_run(manifest, asked, has_ended=has_ended(folder))
    defenses = recorded_defenses(manifest, run)
    return recorded_evidence(
        manifest, defenses, run, transcript.messages, asked.clients, stated.tuning_runs
    )
