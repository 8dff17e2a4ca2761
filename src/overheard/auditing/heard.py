"""Runs that can be listened to, and those that a plan simulates."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from overheard.archive.reader import committed_rounds, open_transcript
from overheard.archive.seconds import read_seconds
from overheard.auditing.alike import are_alike
from overheard.auditing.folder import AuditFolder
from overheard.auditing.simulate import (
    Supplies,
    federation_of,
    knowledge_of,
    with_partition,
)
from overheard.auditing.stopwatch import Stopwatch
from overheard.auditing.work import controls
from overheard.core.accountant import account
from overheard.core.defense import Defense, Run
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Missing, Update
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.federation.cohort import sampling_rate
from overheard.federation.run import run_together
from overheard.findings.finding import ArmDefense, ArmRun
from overheard.findings.traffic import traffic_of
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan

NOBODY_ELSE = "nobody: under this protocol no weights travel"
"""Who could switch off that distilled data travel."""

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

    """

    record: ArmRun
    transcript: Transcript
    truth: GroundTruth | None
    rounds: tuple[int, ...]
    knowledge: Callable[[ThreatPlan], Knowledge]


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
        record = run_record(arm.name, seed, _in_force(plan, arm), transcript, truth)
        yield Heard(
            replace(
                record,
                is_control=is_control,
                # What was rebuilt from distilled data was never sent.
                traffic=traffic_of(open_transcript(folder)),
                seconds=read_seconds(folder),
                are_records_alike=are_alike(plan.data.split, supplies.dataset, dealt),
                canary_odds=dealt.canary_odds,
            ),
            transcript,
            with_partition(truth, federation),
            tuple(range(rounds)),
            partial(knowledge_of, plan, arm, seed, supplies),
        )


def run_record(
    arm: str,
    seed: int,
    defenses: tuple[ArmDefense, ...],
    transcript: Transcript,
    truth: GroundTruth,
) -> ArmRun:
    """What a report tells of one run."""
    bodies = [type(message.body) for message in transcript.messages]
    return ArmRun(
        arm, seed, defenses, truth.accuracy, bodies.count(Missing), bodies.count(Update)
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


def _in_force(plan: Plan, arm: ArmPlan) -> tuple[ArmDefense, ...]:
    share = plan.training.participation
    promised = Run(plan.rounds_of(arm), share, sampling_rate(plan.data.clients, share))
    records = [_record(one, promised) for one in arm.defenses]
    if arm.distillation is not None:
        records.append(
            ArmDefense(repr(arm.distillation), "client", NOBODY_ELSE, "no formal promise")
        )
    return tuple(records)


def _record(defense: Defense, run: Run) -> ArmDefense:
    mechanism = defense.mechanism()
    return ArmDefense(
        repr(defense),
        defense.enforced_at,
        defense.switched_off_by,
        defense.promise(run),
        None if mechanism is None else account(mechanism, run),
    )
