"""The runs that an audit attacks, and the simulation of those that a plan describes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from overheard.archive.layout import count_committed_rounds
from overheard.archive.reader import open_transcript
from overheard.archive.run_digests import check_run_digests, list_round, write_run_digests
from overheard.archive.run_time import read_run_time
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import (
    AttackerInputs,
    AuditInputs,
    combined_digest,
    refuse_plan_without_split,
)
from overheard.auditing.judging.run_truth import RunTruth, no_redraw
from overheard.auditing.knowledge import attacker_knowledge, knowledge_from
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.plan_code import attack_codes, run_origin
from overheard.auditing.progress import Progress
from overheard.auditing.run_records import complete_run_record, planned_defenses
from overheard.auditing.simulate import (
    build_federation,
    with_partition,
    with_redrawn_counts,
)
from overheard.auditing.stopwatch import Stopwatch
from overheard.auditing.work_items import (
    RunKind,
    count_work_items,
    name_observers_of_run,
    run_kinds,
    simulated_parties,
)
from overheard.core.truth import GroundTruth
from overheard.data.partition.data_partition import DataPartition
from overheard.federation.derived_updates import derived_folder
from overheard.federation.run import Federation, run_federations
from overheard.findings.audited_recording import AuditedRecording
from overheard.findings.finding import ArmRun
from overheard.plans.description import describe_plan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan

MAX_BATCH = 32
"""Federations trained together at most: the examples of more would fill the memory."""


@dataclass(frozen=True, slots=True)
class AuditedRun:
    """One run: what attacks see of it, its ground truth, and its entry in the report.

    Args:
        observed: the run as attacks see it.
        truth: what its claims are compared with.
        record: its entry in the report. It takes seconds, as promises of privacy are computed.
        notes: sentences on how its messages were read.

    """

    observed: ObservedRun
    truth: RunTruth
    record: Callable[[], ArmRun]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunStream:
    """The runs that an audit attacks.

    Args:
        subject: one sentence that describes what is audited.
        runs: the audited runs, each as soon as it is trained or opened.
        threats: the threats of the plan, with the names of observers in these runs.
        recording: what the check of the recording proves; None = the runs are simulated.

    """

    subject: str
    runs: Iterator[AuditedRun]
    threats: tuple[ThreatPlan, ...]
    recording: AuditedRecording | None = None


def prepare_simulated_runs(
    plan: Plan,
    audit_inputs: AuditInputs,
    folder: AuditFolder,
    progress: Progress,
    *,
    rerun: bool,
) -> RunStream:
    """Check a plan and return its runs; each federation is trained when it is requested.

    Args:
        plan: the federations to run.
        audit_inputs: the plan's data, and the compute resources.
        folder: the folder of the audit.
        progress: counts the work items.
        rerun: whether to train runs anew that other code or data made, and not to refuse them.

    Raises:
        PlanError: if the plan does not partition the data, or names an observer that is not a
            party of the run.
        OutputError: if other code or data made a run in the folder, or one of its files was
            altered since.

    """
    refuse_plan_without_split(plan)
    for kind in run_kinds(plan):
        audit_inputs.partition(plan.seeds[0], kind)
    named = name_observers_of_run(plan, simulated_parties(plan))
    for run, origin in _run_folders(audit_inputs, folder):
        if not rerun:
            folder.refuse_other_origin(run, origin)
        if not folder.changed_origin(run, origin):
            check_run_digests(run)
    progress.set_total(count_work_items(named))
    runs = simulate_runs(plan, audit_inputs, folder, progress.report_rounds)
    return RunStream(describe_plan(plan), runs, named.threats)


def discard_other_origin(audit_inputs: AuditInputs, folder: AuditFolder) -> None:
    """Remove the runs of a plan that other code or data made; raise as `AuditFolder` does."""
    for run, origin in _run_folders(audit_inputs, folder):
        folder.discard_other_origin(run, origin)


def _run_folders(
    audit_inputs: AuditInputs, folder: AuditFolder
) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Yield the folder of each run of a plan, and the code and data that the run depends on."""
    plan = audit_inputs.plan
    for arm in plan.arms:
        origin = _origin_of_runs(audit_inputs, arm)
        for seed in plan.seeds:
            for kind in run_kinds(plan):
                yield folder.run_path(arm.name, seed, kind.folder_suffix), origin


def _origin_of_runs(audit_inputs: AuditInputs, arm: ArmPlan) -> Mapping[str, str]:
    audited, *_ = audit_inputs.data_digests().items()
    return run_origin(audit_inputs.plan, arm, dict([audited]))


def simulate_runs(
    plan: Plan,
    audit_inputs: AuditInputs,
    folder: AuditFolder,
    on_round: Callable[[str, int], None],
) -> Iterator[AuditedRun]:
    """Run every arm of a plan under every seed; open runs that already exist.

    Controls, if there are any, follow their planned run. The runs of an arm are trained
    together, `MAX_BATCH` at a time, and then yielded one by one; their measured time is
    shared evenly. Runs with dataset distillation gain nothing from batching, so each is
    trained and timed alone.

    Args:
        plan: the federations to run.
        audit_inputs: the plan's data, and the compute resources.
        folder: the folder for the transcripts.
        on_round: called with the arm and the number of rounds that the current batch has
            finished, summed over its runs.

    """
    runs = [(seed, kind) for seed in plan.seeds for kind in run_kinds(plan)]
    for arm in plan.arms:
        size = MAX_BATCH if arm.distillation is None else 1
        for start in range(0, len(runs), size):
            batch = runs[start : start + size]
            yield from _train_batch(plan, arm, batch, audit_inputs, folder, on_round)


def _train_batch(
    plan: Plan,
    arm: ArmPlan,
    batch: Sequence[tuple[int, RunKind]],
    audit_inputs: AuditInputs,
    home: AuditFolder,
    on_round: Callable[[str, int], None],
) -> Iterator[AuditedRun]:
    """Train a batch of runs of an arm; each is a pair of a seed and a kind."""
    first, last = batch[0][0], batch[-1][0]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    description = f"{arm.name}, {seeds}: training"
    on_round(description, 0)
    partitions = [audit_inputs.partition(seed, kind) for seed, kind in batch]
    federations = [
        build_federation(
            plan, arm, seed, partition, audit_inputs.dataset.task, audit_inputs.resources
        )
        for (seed, _), partition in zip(batch, partitions, strict=True)
    ]
    folders = _begin_runs(audit_inputs, arm, batch, home)
    data = combined_digest(audit_inputs.data_digests())
    rounds, codes = plan.rounds_of(arm), attack_codes(plan, arm, data)
    is_open = any(count_committed_rounds(folder) <= rounds for folder in folders)
    watch = Stopwatch(folders, inside=home.path) if is_open else None
    trained = run_federations(
        federations,
        folders,
        on_round=partial(_on_batch_round, on_round, watch, description, folders),
        inside=home.path,
    )
    for folder in folders:
        write_run_digests(folder)
    on_round(description, len(batch) * rounds)
    for (seed, kind), partition, federation, folder, (transcript, truth) in zip(
        batch, partitions, federations, folders, trained, strict=True
    ):
        observed = ObservedRun(
            arm.name,
            seed,
            transcript,
            tuple(range(rounds)),
            partial(attacker_knowledge, arm, seed, audit_inputs),
            arm,
            codes,
            kind,
        )
        yield AuditedRun(
            observed,
            RunTruth(
                with_partition(truth, federation, audit_inputs.dataset.known_token_words()),
                no_redraw
                if kind.is_control
                else partial(_redraw_for_threat, audit_inputs, federation, seed),
            ),
            partial(
                _run_record, plan, observed, audit_inputs, partition, folder, truth.accuracy
            ),
        )


def open_simulated_run(
    inputs: AttackerInputs, home: AuditFolder, arm: ArmPlan, seed: int, kind: RunKind
) -> ObservedRun:
    """Open the finished run of an arm and seed as attacks see it, without its ground truth."""
    plan, folder = inputs.plan, home.run_path(arm.name, seed, kind.folder_suffix)
    return ObservedRun(
        arm.name,
        seed,
        open_transcript(folder if arm.distillation is None else derived_folder(folder)),
        tuple(range(plan.rounds_of(arm))),
        partial(knowledge_from, arm, seed, inputs),
        arm,
        attack_codes(plan, arm, inputs.data.digest),
        kind,
    )


def _run_record(
    plan: Plan,
    run: ObservedRun,
    audit_inputs: AuditInputs,
    partition: DataPartition,
    folder: Path,
    accuracy: Mapping[int, float],
) -> ArmRun:
    """Return the report's entry of a run, with the figures of its messages and its data."""
    record = ArmRun(
        run.name,
        run.seed,
        planned_defenses(plan, run.arm),
        accuracy,
        missing=0,
        answers=0,
        is_control=run.kind.is_control,
        control=run.kind.draws,
        control_number=run.kind.number,
        seconds=read_run_time(folder),
    )
    # Models derived from distilled data are among the observed messages but were never sent.
    sent = open_transcript(folder)
    return complete_run_record(
        plan, record, audit_inputs.dataset, partition, sent, run.transcript
    )


def _begin_runs(
    audit_inputs: AuditInputs,
    arm: ArmPlan,
    batch: Sequence[tuple[int, RunKind]],
    home: AuditFolder,
) -> list[Path]:
    """Return the folders of the runs, prepared for them."""
    folders = [home.run_path(arm.name, seed, kind.folder_suffix) for seed, kind in batch]
    origin = _origin_of_runs(audit_inputs, arm)
    for folder in folders:
        home.begin_run(folder, origin)
    return folders


def _redraw_for_threat(
    audit_inputs: AuditInputs,
    federation: Federation,
    seed: int,
    truth: GroundTruth,
    threat: ThreatPlan,
) -> GroundTruth:
    return with_redrawn_counts(truth, federation, audit_inputs.redrawn_counts(seed, threat))


def _on_batch_round(
    on_round: Callable[[str, int], None],
    watch: Stopwatch | None,
    description: str,
    runs: Sequence[Path],
    number: int,
) -> None:
    if watch is not None:
        watch.lap()
    for run in runs:
        list_round(run, number)
    on_round(description, len(runs) * (number + 1))
