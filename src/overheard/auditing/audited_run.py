"""The runs that an audit attacks, and the simulation of those that a plan describes."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import final

from overheard.archive.layout import count_committed_rounds
from overheard.archive.reader import open_transcript
from overheard.archive.run_digests import check_run_digests, list_round, write_run_digests
from overheard.archive.run_time import RunTime, read_run_time, write_run_time
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import AttackerInputs, AuditInputs
from overheard.auditing.judging.run_truth import DrawnRun, RunTruth
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.program import AuditProgram, RunSpec
from overheard.auditing.run_records import simulated_run_record
from overheard.auditing.simulate import build_federation, with_partition
from overheard.federation.cohort import refuse_untrainable
from overheard.federation.derived_updates import derived_folder
from overheard.federation.run import run_federations
from overheard.findings.finding import ArmRun
from overheard.plans.plan import Plan


@final
class Stopwatch:
    """A stopwatch that writes down the time of federations that train together.

    The time of each lap is shared evenly among the runs and added to their stored time, so an
    interrupted run continues its count. The time of a lap in which the runs were killed is
    lost. A run with unmeasured rounds stays unmeasured.
    """

    def __init__(self, folders: Sequence[Path], *, inside: Path | None = None) -> None:
        """Start.

        Args:
            folders: the folders of the runs, at least one of which is unfinished.
            inside: the output folder that all are in; None = each is one itself.

        Raises:
            TranscriptError: if a stored time is damaged.
            OutputError: if a folder cannot be written.

        """
        self._inside = inside
        self._share = 1 / len(folders)
        self._elapsed = dict[Path, RunTime]()
        for folder in folders:
            start = (
                RunTime(0.0, 0.0)
                if count_committed_rounds(folder) == 0
                else read_run_time(folder)
            )
            if start is not None:
                self._elapsed[folder] = start
                # Written even if unchanged: this replaces a file that a kill left unfinished.
                write_run_time(folder, start, inside=inside)
        self._last = _clocks()

    def lap(self) -> None:
        """Add the time since the last lap to each run and write it down."""
        now, last = _clocks(), self._last
        self._last = now
        cores = None
        if now.cores is not None and last.cores is not None:
            # The CPU time of a killed worker is lost, so the difference may be negative.
            cores = self._share * max(0.0, now.cores - last.cores)
        lap = RunTime(self._share * (now.wall - last.wall), cores)
        for folder, elapsed in self._elapsed.items():
            self._elapsed[folder] = elapsed + lap
            write_run_time(folder, elapsed + lap, inside=self._inside)


def _clocks() -> RunTime:
    return RunTime(time.perf_counter(), core_seconds())


def core_seconds() -> float | None:
    """Return the CPU seconds of this process and its children; None unless on Linux.

    Running children are looked up in `/proc`, since workers persist across rounds. Takes some
    2 ms with a hundred processes.
    """
    if not os.path.exists("/proc/self/stat"):
        return None
    own, ticks = os.getpid(), 0
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            content = Path("/proc", name, "stat").read_bytes()
        except OSError:
            continue  # It has ended; its CPU time now counts as its parent's.
        # proc_pid_stat(5): the state and the parent follow the name in brackets. The ticks of
        # the process, and of children it has waited for, begin at the twelfth field.
        fields = content.rpartition(b")")[2].split()
        if own in (int(name), int(fields[1])):
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


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
        warnings: sentences on what its ground truth states otherwise than its messages.

    """

    observed: ObservedRun
    truth: RunTruth
    record: ArmRun
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


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
        PlanError: as `check_draws` does.
        OutputError: if other code or data made a run in the folder, or one of its files was
            altered since.

    """
    check_draws(program, audit_inputs)
    for run in program.runs:
        folder = run.path_in(home.path)
        if home.is_kept(folder, run.origin, rerun=rerun):
            check_run_digests(folder)


def check_draws(program: AuditProgram, audit_inputs: AuditInputs) -> None:
    """Draw the data of all runs of a program, so that no seed is refused after training began.

    Args:
        program: the program of a plan.
        audit_inputs: the plan's data; it keeps what is drawn.

    Raises:
        PlanError: if a seed has too few examples, an arm cannot be simulated, or the model
            cannot train on the batches of a client.

    """
    plan, dataset, resources = program.plan, audit_inputs.dataset, audit_inputs.resources
    # By seed: distorted examples of few seeds fit into memory.
    for run in sorted(program.runs, key=lambda one: plan.seeds.index(one.seed)):
        partition = audit_inputs.partition(run.seed, run.kind)
        audit_inputs.for_attackers(run.seed)
        refuse_untrainable(
            build_federation(plan, run.arm, run.seed, partition, dataset, resources)
        )


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
    of_attackers = [audit_inputs.for_attackers(run.seed) for run in batch]
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
    for run, partition, inputs, federation, folder, (transcript, truth) in zip(
        batch, partitions, of_attackers, federations, folders, trained, strict=True
    ):
        observed = ObservedRun(run, transcript, inputs)
        whole = with_partition(truth, federation, audit_inputs.dataset.known_token_words())
        is_planned = not run.kind.is_control
        drawn = DrawnRun(audit_inputs, federation, run.seed) if is_planned else None
        record = simulated_run_record(
            plan, observed, audit_inputs.dataset, partition, folder, truth, federation
        )
        yield AuditedRun(observed, RunTruth(whole, drawn), record)


def open_simulated_run(run: RunSpec, inputs: AttackerInputs, home: AuditFolder) -> ObservedRun:
    """Open a finished run as attacks see it, without its ground truth."""
    folder = run.path_in(home.path)
    read = folder if run.arm.distillation is None else derived_folder(folder)
    return ObservedRun(run, open_transcript(read), inputs)


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
