"""The runs that an audit attacks, and the simulation of those that a plan describes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import final

from overheard.archive.layout import count_committed_rounds
from overheard.archive.reader import open_transcript
from overheard.archive.run_digests import check_run_digests, list_round, write_run_digests
from overheard.archive.run_time import read_run_time
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import AttackerInputs, AuditInputs
from overheard.auditing.judging.run_truth import DrawnRun, RunTruth
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.program import AuditProgram, RunSpec
from overheard.auditing.run_records import complete_run_record, planned_defenses
from overheard.auditing.simulate import build_federation, with_partition
from overheard.auditing.stopwatch import Stopwatch
from overheard.data.partition.data_partition import DataPartition
from overheard.federation.derived_updates import derived_folder
from overheard.federation.run import run_federations
from overheard.findings.finding import ArmRun
from overheard.plans.plan import Plan

MAX_BATCH = 32
"""Federations trained together at most: the examples of more would fill the memory."""


@final
@dataclass(frozen=True, slots=True)
class AuditedRun:
    """One run: what attacks see of it, its ground truth, and its entry in the report.

    Args:
        observed: the run as attacks see it.
        truth: what its claims are compared with.
        record: its entry in the report.
        notes: sentences on how its messages were read.

    """

    observed: ObservedRun
    truth: RunTruth
    record: ArmRun
    notes: tuple[str, ...] = ()


def check_simulated_runs(
    program: AuditProgram, audit_inputs: AuditInputs, home: AuditFolder, *, rerun: bool
) -> None:
    """Check that the runs of a program can be trained, or opened if they are there.

    Args:
        program: the program of a plan.
        audit_inputs: the plan's data.
        home: the folder of the audit.
        rerun: whether runs that other code or data made are trained anew, and not refused.

    Raises:
        PlanError: if the plan does not partition the data.
        OutputError: if other code or data made a run in the folder, or one of its files was
            altered since.

    """
    for run in program.runs:
        if run.seed == program.runs[0].seed:
            audit_inputs.partition(run.seed, run.kind)
        folder = run.path_in(home.path)
        if not rerun:
            home.refuse_other_origin(folder, run.origin)
        if not home.changed_origin(folder, run.origin):
            check_run_digests(folder)


def simulate_runs(
    program: AuditProgram,
    audit_inputs: AuditInputs,
    home: AuditFolder,
    on_round: Callable[[str, int], None],
) -> Iterator[AuditedRun]:
    """Train the runs of a program; open those that already exist.

    The runs of an arm are trained together, `MAX_BATCH` at a time, and then yielded one by one;
    their measured time is shared evenly. Runs with dataset distillation gain nothing from
    batching, so each is trained and timed alone.

    Args:
        program: the runs.
        audit_inputs: the plan's data, and the compute resources.
        home: the folder of the audit.
        on_round: called with the arm and the number of rounds that the current batch has
            finished, summed over its runs.

    """
    for _, of_arm in groupby(program.runs, lambda run: run.name):
        runs = tuple(of_arm)
        size = MAX_BATCH if runs[0].arm.distillation is None else 1
        for start in range(0, len(runs), size):
            batch = runs[start : start + size]
            yield from _train_batch(program.plan, batch, audit_inputs, home, on_round)


def _train_batch(
    plan: Plan,
    batch: Sequence[RunSpec],
    audit_inputs: AuditInputs,
    home: AuditFolder,
    on_round: Callable[[str, int], None],
) -> Iterator[AuditedRun]:
    """Train a batch of runs of an arm."""
    arm, first, last = batch[0].arm, batch[0].seed, batch[-1].seed
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    description, rounds = f"{arm.name}, {seeds}: training", len(batch[0].rounds)
    on_round(description, 0)
    partitions = [audit_inputs.partition(run.seed, run.kind) for run in batch]
    federations = [
        build_federation(
            plan, arm, run.seed, partition, audit_inputs.dataset, audit_inputs.resources
        )
        for run, partition in zip(batch, partitions, strict=True)
    ]
    folders = [run.path_in(home.path) for run in batch]
    for run, folder in zip(batch, folders, strict=True):
        home.begin_run(folder, run.origin)
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
    for run, partition, federation, folder, (transcript, truth) in zip(
        batch, partitions, federations, folders, trained, strict=True
    ):
        observed = ObservedRun(run, transcript, audit_inputs.for_attackers(run.seed))
        whole = with_partition(truth, federation, audit_inputs.dataset.known_token_words())
        is_planned = not run.kind.is_control
        drawn = DrawnRun(audit_inputs, federation, run.seed) if is_planned else None
        record = _run_record(plan, observed, audit_inputs, partition, folder, truth.accuracy)
        yield AuditedRun(observed, RunTruth(whole, drawn), record)


def open_simulated_run(run: RunSpec, inputs: AttackerInputs, home: AuditFolder) -> ObservedRun:
    """Open a finished run as attacks see it, without its ground truth."""
    folder = run.path_in(home.path)
    read = folder if run.arm.distillation is None else derived_folder(folder)
    return ObservedRun(run, open_transcript(read), inputs)


def _run_record(
    plan: Plan,
    run: ObservedRun,
    audit_inputs: AuditInputs,
    partition: DataPartition,
    folder: Path,
    accuracy: Mapping[int, float],
) -> ArmRun:
    """Return the report's entry of a run, with the figures of its messages and its data."""
    spec = run.spec
    record = ArmRun(
        spec.name,
        spec.seed,
        planned_defenses(plan, spec.arm),
        accuracy,
        missing=0,
        answers=0,
        is_control=spec.kind.is_control,
        control=spec.kind.draws,
        control_number=spec.kind.number,
        seconds=read_run_time(folder),
    )
    # Models derived from distilled data are among the observed messages but were never sent.
    sent = open_transcript(folder)
    return complete_run_record(
        plan, record, audit_inputs.dataset, partition, sent, run.transcript
    )


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
