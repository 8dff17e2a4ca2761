"""Runs that can be listened to: simulated by a plan, or recorded elsewhere."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript
from overheard.archive.truth import read_truth
from overheard.audit.finding import ArmRun, DefenseRecord
from overheard.audit.folder import AuditFolder
from overheard.audit.plan import ArmPlan, Plan, ThreatPlan
from overheard.audit.simulate import Resources, federation_of, knowledge_of
from overheard.core.defense import Run
from overheard.core.errors import PlanError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Missing, Update
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.data.dataset import Dataset
from overheard.federation.run import run

RECORDED = "recorded"
"""Name of the one arm of an audit of a recorded run."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One run, its truth, and what the attacker of a threat knows before it listens.

    Args:
        record: what the report tells of the run.
        transcript: all that was said.
        truth: what was the case.
        rounds: those with answers, in order.
        knowledge: by threat.

    """

    record: ArmRun
    transcript: Transcript
    truth: GroundTruth
    rounds: tuple[int, ...]
    knowledge: Callable[[ThreatPlan], Knowledge]


def simulated(
    plan: Plan,
    dataset: Dataset,
    home: AuditFolder,
    resources: Resources,
    on_round: Callable[[str, int], None],
) -> Iterator[Heard]:
    """Run every arm of a plan under every seed, or open what was run before.

    Args:
        plan: which federations.
        dataset: the plan's, loaded.
        home: where the transcripts go.
        resources: what the work is done on.
        on_round: told the arm and how many of its rounds are done.

    """
    for seed in plan.seeds:
        for arm in plan.arms:
            what = f"{arm.name}, seed {seed}: training"
            on_round(what, 0)
            transcript, truth = run(
                federation_of(plan, arm, seed, dataset, resources),
                home.run(arm.name, seed),
                on_round=partial(_count, on_round, what),
            )
            on_round(what, plan.training.rounds)
            yield Heard(
                _record(arm.name, seed, _in_force(plan, arm), transcript, truth),
                transcript,
                truth,
                tuple(range(plan.training.rounds)),
                partial(knowledge_of, plan, arm, seed, dataset),
            )


def recorded(plan: Plan, dataset: Dataset, recording: Path) -> Iterator[Heard]:
    """Open a recorded run: `transcript/` and `truth.json` in one folder.

    Raises:
        PlanError: if its classes are not those of the plan's data.
        TranscriptError: if it is damaged, incomplete or has no truth to hold claims against.

    """
    manifest = read_manifest(recording)
    if manifest.task.class_names != dataset.task.class_names:
        raise PlanError(
            f"{recording}: has the classes {', '.join(manifest.task.class_names)}, the plan's "
            f"data {', '.join(dataset.task.class_names)}: name the data the run was about"
        )
    transcript, truth = open_transcript(recording), read_truth(recording)
    defenses = tuple(
        DefenseRecord(
            one.settings, one.enforced_at, one.switched_off_by, "as recorded: not verified"
        )
        for one in manifest.defenses
    )
    seed = plan.seeds[0]
    yield Heard(
        _record(RECORDED, seed, defenses, transcript, truth),
        transcript,
        truth,
        tuple(sorted({number for number, _ in truth.counts})),
        partial(knowledge_of, plan, plan.arms[0], seed, dataset),
    )


def _count(on_round: Callable[[str, int], None], what: str, number: int) -> None:
    on_round(what, number + 1)


def _in_force(plan: Plan, arm: ArmPlan) -> tuple[DefenseRecord, ...]:
    promised = Run(plan.training.rounds, plan.training.participation)
    return tuple(
        DefenseRecord(repr(one), one.enforced_at, one.switched_off_by, one.promise(promised))
        for one in arm.defenses
    )


def _record(
    arm: str,
    seed: int,
    defenses: tuple[DefenseRecord, ...],
    transcript: Transcript,
    truth: GroundTruth,
) -> ArmRun:
    bodies = [type(message.body) for message in transcript.messages]
    return ArmRun(
        arm, seed, defenses, truth.accuracy, bodies.count(Missing), bodies.count(Update)
    )
