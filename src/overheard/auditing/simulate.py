"""Turns a plan into federations, and runs them."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from overheard.auditing.knowledge import knowledge_of
from overheard.auditing.supplies import (
    Resources,
    deal_examples,
    load_data,
    refuse_to_simulate_nothing,
    supply,
)
from overheard.core.errors import PlanError
from overheard.core.knowledge import Knowledge
from overheard.core.means import MemoryShelf
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth, Partition
from overheard.data.partition.deal import Deal
from overheard.federation.run import Federation, run
from overheard.learning.device import choose_device
from overheard.plans.plan import ArmPlan, Plan


def federation_of(
    plan: Plan, arm: ArmPlan, seed: int, dealt: Deal, task: Task, resources: Resources
) -> Federation:
    """The federation that one arm runs under one seed, on these examples."""
    training, who, rounds = plan.training, dealt.who, plan.rounds_of(arm)
    return Federation(
        build_model=partial(training.model.build, task),
        model=repr(training.model),
        task=task,
        recipe=training.recipe,
        pool=dealt.pool,
        # Those of an arm that goes on for longer stay as they are.
        rows=[dealt.rows[min(number, len(dealt.rows) - 1)] for number in range(rounds)],
        test=dealt.test,
        rounds=rounds,
        participation=training.participation,
        failure_rate=training.failure_rate,
        defenses=arm.defenses,
        seed=Seed(seed).child("federation"),
        engine=resources.engine,
        workers=resources.workers,
        device=str(choose_device(resources.device)),
        shifts=dealt.shifts,
        shadows=0 if who is None else len(who.devices),
        are_shadows_defended=arm.shadows_defended,
        users={} if who is None else who.users,
        attributes={} if who is None else who.attributes,
        members=dealt.members,
        background=dealt.background,
        distillation=arm.distillation,
    )


def simulate(
    plan: Plan,
    *,
    arm: str | None = None,
    seed: int | None = None,
    is_control: bool = False,
    folder: Path | None = None,
    resources: Resources | None = None,
    on_round: Callable[[int], None] | None = None,
) -> tuple[Transcript, GroundTruth]:
    """Run one federation of a plan.

    Args:
        plan: which federation.
        arm: name of the arm; left out: the first without defenses.
        seed: one of the plan's or another; left out: the plan's first.
        is_control: whether to run the control: see `auditing.work.controls`.
        folder: where the transcript is streamed to and, if it is there already, taken up
            again; left out: a temporary folder that is never removed by us, as the transcript
            is read from it lazily.
        resources: where the data lie and what the work is done on.
        on_round: told the number of each round when it is done.

    """
    refuse_to_simulate_nothing(plan)
    resources = resources or Resources()
    dataset = load_data(plan, resources)
    number = plan.seeds[0] if seed is None else seed
    dealt = deal_examples(plan, dataset, number, is_control)
    federation = federation_of(plan, _arm(plan, arm), number, dealt, dataset.task, resources)
    transcript, truth = run(
        federation, folder or Path(tempfile.mkdtemp(prefix="overheard-")), on_round=on_round
    )
    return transcript, with_partition(truth, federation)


def with_partition(truth: GroundTruth, federation: Federation) -> GroundTruth:
    """Return the same truth, which also says who held which examples."""
    index_of = {party: index for index, party in enumerate(federation.clients)}
    rows = {
        (number, who): federation.rows[number][index_of[who]]
        for number, who in truth.counts
        if who in index_of
    }
    return replace(truth, partition=Partition(federation.pool, rows))


def knowledge(
    plan: Plan,
    *,
    arm: str | None = None,
    seed: int | None = None,
    resources: Resources | None = None,
) -> Knowledge:
    """What the attacker of the plan's first threat knows; see `simulate` for the settings."""
    supplies = supply(plan, resources or Resources(), MemoryShelf())
    number = plan.seeds[0] if seed is None else seed
    return knowledge_of(_arm(plan, arm), number, supplies, plan.threats[0])


def _arm(plan: Plan, name: str | None) -> ArmPlan:
    if name is None:
        return next(arm for arm in plan.arms if not arm.defenses and arm.distillation is None)
    names = [arm.name for arm in plan.arms]
    if name not in names:
        raise PlanError(f"the plan has no arm {name!r}; it has {', '.join(names)}")
    return plan.arms[names.index(name)]
