"""What the doctor may look at: the arms of a plan, or a recording."""

from pathlib import Path

from overheard.archive.manifest import Manifest, read_manifest
from overheard.archive.reader import open_transcript
from overheard.archive.requested_rounds import count_requested_rounds
from overheard.archive.run_end import has_ended
from overheard.auditing.run_records import planned_defenses, recorded_defenses, recorded_run
from overheard.core.defense import RunParameters
from overheard.doctor.recorded.evidence import RunEvidence, StatedMechanism
from overheard.federation.sampling import sampling_rate
from overheard.findings.finding import ArmDefense
from overheard.plans.plan import Plan
from overheard.plans.recording_plan import complete_manifest


def plan_evidence(plan: Plan) -> tuple[RunEvidence, ...]:
    """Return what a plan states of each of its arms."""
    return tuple(
        RunEvidence(
            f"arm {arm.name!r}",
            _mechanisms(planned_defenses(plan, arm)),
            are_defenses_known=True,
            run=RunParameters(
                plan.rounds_of(arm),
                plan.training.participation,
                sampling_rate(
                    plan.data.clients, plan.training.participation, plan.training.sampling
                ),
                plan.training.sampling,
                epochs=plan.training.possible_epochs[-1],
            ),
            clients=plan.data.clients,
            recipe=plan.training.recipe,
            algorithm=repr(arm.algorithm or plan.training.algorithm),
        )
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
    manifest: Manifest = read_manifest(folder)
    if plan is not None:
        manifest = complete_manifest(manifest, plan.recording, folder)
    transcript = open_transcript(folder)
    asked = count_requested_rounds(transcript, manifest.parties)
    run = recorded_run(manifest, asked, has_ended=has_ended(folder))
    counts = [
        count
        for message in transcript.messages
        if (count := getattr(message.body, "examples", None)) is not None
    ]
    return RunEvidence(
        "the recording",
        _mechanisms(recorded_defenses(manifest, run)),
        are_defenses_known=manifest.are_defenses_known,
        run=run,
        clients=asked.clients,
        messages=tuple(transcript.messages),
        recipe=manifest.recipe,
        algorithm=manifest.algorithm,
        examples=min(counts, default=None),
    )


def _mechanisms(defenses: tuple[ArmDefense, ...]) -> tuple[StatedMechanism, ...]:
    return tuple(
        StatedMechanism(one.settings, one.accounted)
        for one in defenses
        if one.accounted is not None
    )
