"""The runs that an audit attacks, and the simulation of those that a plan describes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from overheard.archive.layout import count_committed_rounds
from overheard.archive.reader import open_transcript
from overheard.archive.run_time import read_run_time
from overheard.auditing.folder import AuditFolder
from overheard.auditing.knowledge import knowledge_of
from overheard.auditing.progress import Progress
from overheard.auditing.record import planned_defenses, run_record
from overheard.auditing.simulate import federation_of, with_partition
from overheard.auditing.stopwatch import Stopwatch
from overheard.auditing.supplies import Supplies, refuse_to_simulate_nothing
from overheard.auditing.work import controls, pieces, refuse_strangers
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, client
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.federation.run import run_federations
from overheard.findings.finding import ArmRun
from overheard.plans.description import describe_plan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan

LARGEST_BATCH = 32
"""Federations trained together at most: the examples of more would fill the memory."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One run, its ground truth, and the prior knowledge of each threat's attacker.

    Args:
        record: the run's entry in the report.
        transcript: all messages of the run.
        truth: the ground truth; None if unknown.
        rounds: the rounds with updates, in order.
        knowledge: returns the attacker's knowledge under a threat.
        arm: of the plan, with the defenses in force.

    """

    record: ArmRun
    transcript: Transcript
    truth: GroundTruth | None
    rounds: tuple[int, ...]
    knowledge: Callable[[ThreatPlan], Knowledge]
    arm: ArmPlan


@dataclass(frozen=True, slots=True)
class AuditedRuns:
    """The runs that an audit attacks.

    Args:
        subject: one sentence that describes what is audited.
        heard: the audited runs, each as soon as it is trained or opened.

    """

    subject: str
    heard: Iterator[Heard]


def simulated_runs(
    plan: Plan, supplies: Supplies, home: AuditFolder, progress: Progress
) -> AuditedRuns:
    """Check a plan and return its runs; each federation is trained when it is requested.

    Raises:
        PlanError: if the plan does not partition the data, or names an observer that is not a
            party of the run.

    """
    refuse_to_simulate_nothing(plan)
    for is_control in controls(plan):
        supplies.partition(plan.seeds[0], is_control)
    refuse_strangers(plan, (SERVER, *map(client, range(plan.data.clients))))
    progress.expect(pieces(plan))
    return AuditedRuns(describe_plan(plan), simulated(plan, supplies, home, progress.rounds))


def simulated(
    plan: Plan,
    supplies: Supplies,
    home: AuditFolder,
    on_round: Callable[[str, int], None],
) -> Iterator[Heard]:
    """Run every arm of a plan under every seed; open runs that already exist.

    A control run, if there is one, follows its planned run. The runs of an arm are trained
    together, `LARGEST_BATCH` at a time, and then yielded one by one; their measured time is
    shared evenly. Runs with dataset distillation gain nothing from batching, so each is
    trained and timed alone.

    Args:
        plan: the federations to run.
        supplies: the plan's data, and the compute resources.
        home: the folder for the transcripts.
        on_round: called with the arm and the number of rounds that the current batch has
            finished, summed over its runs.

    """
    runs = [(seed, is_control) for seed in plan.seeds for is_control in controls(plan)]
    for arm in plan.arms:
        size = LARGEST_BATCH if arm.distillation is None else 1
        for start in range(0, len(runs), size):
            batch = runs[start : start + size]
            yield from _trained(plan, arm, batch, supplies, home, on_round)


def _trained(
    plan: Plan,
    arm: ArmPlan,
    batch: Sequence[tuple[int, bool]],
    supplies: Supplies,
    home: AuditFolder,
    on_round: Callable[[str, int], None],
) -> Iterator[Heard]:
    """Train a batch of runs of an arm; each is a pair (seed, whether it is the control)."""
    first, last = batch[0][0], batch[-1][0]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    description = f"{arm.name}, {seeds}: training"
    on_round(description, 0)
    partitions = [supplies.partition(seed, is_control) for seed, is_control in batch]
    federations = [
        federation_of(plan, arm, seed, partition, supplies.dataset.task, supplies.resources)
        for (seed, _), partition in zip(batch, partitions, strict=True)
    ]
    folders = [home.run(arm.name, seed, is_control=is_control) for seed, is_control in batch]
    rounds = plan.rounds_of(arm)
    is_open = any(count_committed_rounds(folder) <= rounds for folder in folders)
    watch = Stopwatch(folders) if is_open else None
    trained = run_federations(
        federations, folders, on_round=partial(_count, on_round, watch, description, len(batch))
    )
    on_round(description, len(batch) * rounds)
    for (seed, is_control), partition, federation, folder, (transcript, truth) in zip(
        batch, partitions, federations, folders, trained, strict=True
    ):
        record = ArmRun(
            arm.name,
            seed,
            planned_defenses(plan, arm),
            truth.accuracy,
            missing=0,
            answers=0,
            is_control=is_control,
            seconds=read_run_time(folder),
        )
        # Models derived from distilled data are in `transcript` but were never sent.
        sent = open_transcript(folder)
        yield Heard(
            run_record(plan, record, supplies.dataset, partition, sent, transcript),
            transcript,
            with_partition(truth, federation),
            tuple(range(rounds)),
            partial(knowledge_of, arm, seed, supplies),
            arm,
        )


def _count(
    on_round: Callable[[str, int], None],
    watch: Stopwatch | None,
    description: str,
    runs: int,
    number: int,
) -> None:
    if watch is not None:
        watch.lap()
    on_round(description, runs * (number + 1))
