"""A recorded run, checked against the plan that audits it."""

from functools import partial
from hashlib import blake2b
from pathlib import Path

from overheard.archive.layout import (
    count_committed_rounds,
    manifest_path,
    messages_path,
    read_checked_file,
    transcript_folder,
    truth_path,
)
from overheard.archive.manifest import Manifest, read_manifest
from overheard.archive.reader import open_transcript
from overheard.archive.truth import has_truth, read_truth
from overheard.auditing.audited_run import AuditedRun, RunStream
from overheard.auditing.inputs import AuditInputs, Resources, partition_for_plan
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.model_tensors import select_model_tensors
from overheard.auditing.progress import Progress
from overheard.auditing.recorded_truth import read_recorded_truth
from overheard.auditing.run_records import complete_run_record, recorded_defenses
from overheard.auditing.simulate import build_federation
from overheard.auditing.tensor_selection import name_positions
from overheard.auditing.work_items import count_cells, name_observers_of_run
from overheard.core.errors import PlanError
from overheard.core.messages import Aggregate, DistilledSet, Update
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import EMPTY_GROUND_TRUTH
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.federation.digest import data_digest
from overheard.findings.finding import ArmRun
from overheard.learning.initialization import fresh_model
from overheard.plans.description import describe_recording
from overheard.plans.plan import ArmPlan, Plan

RECORDED = "recorded"
"""Name of the single arm in the audit of a recording."""


def prepare_recorded_runs(
    plan: Plan, audit_inputs: AuditInputs, recording: Path, progress: Progress
) -> RunStream:
    """Open the run of a recording and check the observers; see `open_recorded_run`."""
    run = open_recorded_run(plan, audit_inputs, recording)
    parties = run.transcript.parties()
    named = name_observers_of_run(plan, parties)
    progress.set_total(count_cells(named, len(run.rounds), is_control=False))
    manifest = read_manifest(recording)
    subject = describe_recording(plan, manifest, len(parties), len(run.rounds))
    return RunStream(subject, iter((run,)), named.threats)


def open_recorded_run(plan: Plan, audit_inputs: AuditInputs, recording: Path) -> AuditedRun:
    """Open a recorded run: `transcript/` and, if it exists, `truth.json`.

    Attacks get the tensors that the plan's model sends: its trainable parameters, and its
    buffers, such as running means, if the run sent them. Others, such as the number of steps
    that a batch norm counts, count as traffic only.

    Raises:
        PlanError: if the plan's data, partition, model, recipe or defenses differ from those of
            the run, or if it asks about records of unknown membership.
        TranscriptError: if the recording is damaged, or its ground truth is incomplete.

    """
    manifest, dataset = read_manifest(recording), audit_inputs.dataset
    whole = open_transcript(recording)
    _refuse_other_data(recording, manifest, dataset)
    transcript = _select_model_tensors(recording, manifest, whole, plan, dataset)
    partition = _check_partition(recording, manifest, transcript, audit_inputs)
    truth = read_recorded_truth(
        recording, transcript, dataset.task.classes, partition, is_external=not manifest.data
    )
    seed, arm = plan.seeds[0], _recorded_arm(recording, manifest, plan)
    rounds = _rounds_with_updates(transcript)
    record = ArmRun(
        RECORDED,
        seed,
        recorded_defenses(manifest, len(rounds)),
        (truth or EMPTY_GROUND_TRUTH).accuracy,
        missing=0,
        answers=0,
        has_truth=truth is not None,
        are_defenses_known=bool(manifest.defenses) or manifest.framework == "overheard",
    )
    return AuditedRun(
        complete_run_record(plan, record, dataset, partition, whole, transcript),
        transcript,
        truth,
        rounds,
        partial(attacker_knowledge, arm, seed, audit_inputs),
        arm,
    )


def recording_digest(recording: Path) -> str:
    """Return a digest of everything in the recording.

    Raises:
        TranscriptError: if the recording cannot be read.

    """
    transcript = transcript_folder(recording)
    read_manifest(recording)
    digest = blake2b(read_checked_file(manifest_path(transcript), transcript), digest_size=12)
    # The stored messages include digests of their weights.
    for number in range(count_committed_rounds(recording)):
        digest.update(read_checked_file(messages_path(transcript, number), transcript))
    if has_truth(recording):
        read_truth(recording)
        digest.update(truth_path(recording).read_bytes())
    return digest.hexdigest()


def _refuse_other_data(recording: Path, manifest: Manifest, dataset: Dataset) -> None:
    recorded_task, task = manifest.task, dataset.task
    if recorded_task is None:
        return
    if recorded_task.class_names != task.class_names:
        raise PlanError(
            f"{recording}: has the classes {', '.join(recorded_task.class_names)}, the plan's "
            f"data have {', '.join(task.class_names)}: name the data of the run in the plan"
        )
    if recorded_task.shape != task.shape:
        raise PlanError(
            f"{recording}: has examples of shape {recorded_task.shape}, the plan's data have "
            f"{task.shape}: name the data of the run in the plan"
        )


def _rounds_with_updates(transcript: Transcript) -> tuple[int, ...]:
    """Return the rounds in which a client contributed an update, in order."""
    kinds = (Update, DistilledSet, Aggregate)
    return tuple(sorted({m.round for m in transcript.messages if isinstance(m.body, kinds)}))


def _select_model_tensors(
    recording: Path, manifest: Manifest, whole: Transcript, plan: Plan, dataset: Dataset
) -> Transcript:
    """Select the parameters of the plan's model from all messages.

    Refuse a plan whose model or recipe differs from that of the run: attackers would get wrong
    knowledge.
    """
    model, recipe = plan.training.model, plan.training.recipe
    if manifest.recipe is not None and manifest.recipe != recipe:
        raise PlanError(
            f"{recording}: was trained with {manifest.recipe}, the plan says {recipe}: change "
            "[training] of the plan to the recipe of the run"
        )
    network = fresh_model(partial(model.build, dataset.task), Seed(0))
    whole = name_positions(whole, network)
    return select_model_tensors(recording, whole, network, manifest.model, plan.training.record)


def _check_partition(
    recording: Path, manifest: Manifest, transcript: Transcript, audit_inputs: AuditInputs
) -> DataPartition:
    """Return the plan's partition, after checking that it is that of the run.

    A different partition could give the attacker examples that clients hold. A run that was not
    simulated by Overheard has no digest to compare. Its candidate records must be canaries,
    since the membership of other records is unknown.
    """
    plan, dataset = audit_inputs.plan, audit_inputs.dataset
    seed = plan.seeds[0]
    if not manifest.data:
        partition = audit_inputs.partition(seed)
        if partition.candidates is not None and partition.canary_odds is None:
            raise PlanError(
                f"{recording}: was not simulated by Overheard, so the members among the "
                "records of data.candidates are unknown: use canaries, which `overheard "
                "canaries` draws before a run, or remove data.candidates"
            )
        return partition
    rounds = max((message.round for message in transcript.messages), default=0) or 1
    training = plan.training.model_copy(update={"rounds": rounds})
    matched, cpu = plan.model_copy(update={"training": training}), Resources(device="cpu")
    partition = partition_for_plan(matched, dataset, seed)
    planned = build_federation(matched, plan.arms[0], seed, partition, dataset.task, cpu)
    if manifest.data != data_digest(planned):
        raise PlanError(
            f"{recording}: its clients held other examples than the plan assigns, so an "
            "auxiliary example could be a client's: use the [data] and the seed of the run"
        )
    return partition


def _recorded_arm(recording: Path, manifest: Manifest, plan: Plan) -> ArmPlan:
    """Return the plan's arm with the recorded defenses, for attackers that know them."""
    recorded_settings = [one.settings for one in manifest.defenses]
    for arm in plan.arms:
        if [repr(defense) for defense in arm.defenses] == recorded_settings:
            return arm
    if any("defenses" in threat.knows for threat in plan.threats):
        raise PlanError(
            f"{recording}: had the defenses {'; '.join(recorded_settings)}, which an attacker "
            "of the plan knows, but no arm of the plan has them: add an arm with them"
        )
    return next(arm for arm in plan.arms if not arm.defenses)
