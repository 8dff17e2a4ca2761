"""Runs that can be listened to, and those that a plan simulates."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from overheard.archive.layout import committed_rounds
from overheard.archive.reader import open_transcript
from overheard.archive.seconds import read_seconds
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
from overheard.federation.run import run_together
from overheard.findings.finding import ArmRun
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.subject import subject_of_plan

LARGEST_BATCH = 32
"""Federations trained side by side at most: beyond it their examples fill the memory."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One run, its truth, and what the attacker of a threat knows before it listens.

    Args:
        record: what the report tells of the run.
        transcript: all that was said.
        truth: what was the case; None where nobody told.
        rounds: those with answers, in order.
        knowledge: by threat.
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
    """What an audit listens to.

    Args:
        subject: one sentence on what is audited.
        heard: the audited runs one by one, each as soon as it is trained or opened.

    """

    subject: str
    heard: Iterator[Heard]


def simulated_runs(
    plan: Plan, supplies: Supplies, home: AuditFolder, progress: Progress
) -> AuditedRuns:
    """Refuse all that can be refused beforehand; the federations run as they are asked for.

    Raises:
        PlanError: if the plan says not who holds what, or names observers who take no part.

    """
    refuse_to_simulate_nothing(plan)
    for is_control in controls(plan):
        supplies.partition(plan.seeds[0], is_control)
    refuse_strangers(plan, (SERVER, *map(client, range(plan.data.clients))))
    progress.expect(pieces(plan))
    return AuditedRuns(subject_of_plan(plan), simulated(plan, supplies, home, progress.rounds))


def simulated(
    plan: Plan,
    supplies: Supplies,
    home: AuditFolder,
    on_round: Callable[[str, int], None],
) -> Iterator[Heard]:
    """Run every arm of a plan under every seed, or open what was run before.

    Where there are controls, each run is followed by its own. The runs of an arm are trained
    side by side, `LARGEST_BATCH` at a time, and then given one by one. Those who train together
    share the time that it takes. Distilled data have no use of company: each such run is on
    its own, and so is its time.

    Args:
        plan: which federations.
        supplies: its data, and what the work is done on.
        home: where the transcripts go.
        on_round: told the arm, and how many rounds are done of the batch in training, those
            of all its runs together.

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
    """Train some runs of an arm, each a seed and whether it is the control."""
    first, last = batch[0][0], batch[-1][0]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    what = f"{arm.name}, {seeds}: training"
    on_round(what, 0)
    deals = [supplies.partition(seed, is_control) for seed, is_control in batch]
    federations = [
        federation_of(plan, arm, seed, dealt, supplies.dataset.task, supplies.resources)
        for (seed, _), dealt in zip(batch, deals, strict=True)
    ]
    folders = [home.run(arm.name, seed, is_control=is_control) for seed, is_control in batch]
    rounds = plan.rounds_of(arm)
    is_open = any(committed_rounds(folder) <= rounds for folder in folders)
    watch = Stopwatch(folders) if is_open else None
    trained = run_together(
        federations, folders, on_round=partial(_count, on_round, watch, what, len(batch))
    )
    on_round(what, len(batch) * rounds)
    for (seed, is_control), dealt, federation, folder, (transcript, truth) in zip(
        batch, deals, federations, folders, trained, strict=True
    ):
        record = ArmRun(
            arm.name,
            seed,
            planned_defenses(plan, arm),
            truth.accuracy,
            missing=0,
            answers=0,
            is_control=is_control,
            seconds=read_seconds(folder),
        )
        # What was rebuilt from distilled data was never sent.
        sent = open_transcript(folder)
        yield Heard(
            run_record(plan, record, supplies.dataset, dealt, sent, transcript),
            transcript,
            with_partition(truth, federation),
            tuple(range(rounds)),
            partial(knowledge_of, arm, seed, supplies),
            arm,
        )


def _count(
    on_round: Callable[[str, int], None],
    watch: Stopwatch | None,
    what: str,
    runs: int,
    number: int,
) -> None:
    if watch is not None:
        watch.lap()
    on_round(what, runs * (number + 1))
