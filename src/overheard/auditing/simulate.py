"""Builds the federations of a plan and runs them."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.auditing.inputs import (
    Resources,
    load_data,
    load_inputs,
    partition_for_plan,
    refuse_plan_without_split,
)
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.run_kinds import PLANNED, first_control
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.errors import PlanError
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.true_facts.record_owners import OfferedCanaries, RecordOwners
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import ByRound, GroundTruth, Partition, TrueFact
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.disk.folder_lock import lock_folder
from overheard.federation.run import Federation, run
from overheard.federation.sampling import clients_per_round
from overheard.learning.devices.choice import check_device, settle_device
from overheard.learning.devices.training_work import TrainingWork
from overheard.learning.train import describe_training
from overheard.plans.plan import ArmPlan, Plan
from overheard.plans.registries import questions


def build_federation(
    plan: Plan,
    arm: ArmPlan,
    seed: int,
    partition: DataPartition,
    dataset: Dataset,
    resources: Resources,
) -> Federation:
    """Build the federation of an arm and seed on a partition of the data."""
    training, users, rounds = plan.training, partition.run_users, plan.rounds_of(arm)
    candidates = plan.data.candidates
    # Where no noise is added there is no epsilon to bound, and nothing limits a gradient.
    is_crafted = (
        candidates is not None
        and candidates.canaries == "crafted"
        and any(defense.mechanism() is not None for defense in arm.defenses)
    )
    if is_crafted:
        _refuse_replaced_canaries(partition)
    facts = _true_facts(dataset, partition)
    return Federation(
        build_model=partial(training.model.build, dataset.task),
        model=repr(training.model),
        task=dataset.task,
        recipe=training.recipe,
        pool=partition.pool,
        # An arm with more rounds keeps the last partition.
        rows=[partition.rows[min(number, len(partition.rows) - 1)] for number in range(rounds)],
        test=partition.test,
        rounds=rounds,
        participation=training.participation,
        failure_rate=training.failure_rate,
        defenses=arm.defenses,
        seed=Seed(seed).child("federation"),
        engine=resources.engine,
        workers=resources.workers,
        device=_training_device(plan, arm, partition, dataset, resources),
        shadows=0 if users is None else len(users.shadow_rows),
        are_shadows_defended=arm.shadows_defended,
        facts=facts,
        background=partition.background,
        distillation=arm.distillation,
        algorithm=plan.algorithm_of(arm),
        sampling=training.sampling,
        epochs_range=training.epochs_range,
        straggler_rate=training.straggler_rate,
        crafted=partition.members if is_crafted else {},
        crafted_count=len(partition.candidates or ()) if is_crafted else 0,
    )


def _training_device(
    plan: Plan, arm: ArmPlan, partition: DataPartition, dataset: Dataset, resources: Resources
) -> str:
    """Return where the clients of an arm train; "auto" depends on the rounds of the plan."""
    check_device(resources.device)
    if resources.engine not in {"auto", "stacked"} and resources.device == "auto":
        return "cpu"
    return settle_device(
        resources.device,
        partial(describe_round, plan, arm, partition, dataset),
        "clients of the federation",
    )


def describe_round(
    plan: Plan, arm: ArmPlan, partition: DataPartition, dataset: Dataset
) -> TrainingWork | None:
    """Describe the training of the clients of a round, to choose the device for it."""
    recipe, rows = plan.training.recipe, partition.rows[0]
    examples = sum(map(len, rows)) / len(rows)
    return describe_training(
        partial(plan.training.model.build, dataset.task),
        partition.pool.inputs,
        recipe,
        clients=clients_per_round(len(rows), plan.training.participation),
        examples=examples * recipe.epochs,
        steps=recipe.steps(max(1, round(examples)), None),
        times=plan.rounds_of(arm) * len(plan.arms) * len(plan.seeds),
    )


def _refuse_replaced_canaries(partition: DataPartition) -> None:
    """Refuse clients that replace examples, as their canaries are their last ones.

    Raises:
        PlanError: if one does.

    """
    first, *later = partition.rows
    if any(
        not torch.equal(rows, before)
        for chunks in later
        for rows, before in zip(chunks, first, strict=True)
    ):
        raise PlanError(
            "candidates: clients that replace examples cannot have canaries with crafted "
            "gradients: leave out data.refresh_every and data.shifts"
        )


def _true_facts(dataset: Dataset, partition: DataPartition) -> Facts[TrueFact]:
    """Return what is true of the clients of a partition, whatever the plan asks."""
    facts = Facts[TrueFact]()
    if partition.run_users is not None:
        facts = facts.having(UsersOfClients(partition.run_users.users))
        facts = facts.having(Attributes(partition.run_users.attributes))
    if partition.drawn_from is not None:
        facts = facts.having(DrawnShares.of_rounds(partition.drawn_from))
    if partition.shifts:
        facts = facts.having(Shifts(partition.shifts))
    if partition.members:
        facts = facts.having(RecordOwners(partition.members))
    if partition.offered:
        facts = facts.having(OfferedCanaries(partition.offered))
    for question in questions().values():
        for fact in question.make_true_facts(dataset, partition):
            facts = facts.having(fact)
    return facts


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
        arm: name of the arm; default: the first without defenses.
        seed: any seed; default: the plan's first.
        is_control: whether to run the first control: see `auditing.run_kinds.run_kinds`.
        folder: where the transcript is written; a run that exists there is resumed. Default: a
            temporary folder, which is never removed since the transcript is read from it
            lazily.
        resources: where the data are, and the compute resources.
        on_round: called with the number of each finished round.

    """
    refuse_plan_without_split(plan)
    resources = resources or Resources()
    dataset = load_data(plan, resources)
    number = plan.seeds[0] if seed is None else seed
    kind = first_control(plan) if is_control else PLANNED
    partition = partition_for_plan(plan, dataset, number, kind)
    federation = build_federation(
        plan, _select_arm(plan, arm), number, partition, dataset, resources
    )
    folder = folder or Path(tempfile.mkdtemp(prefix="overheard-"))
    with lock_folder(folder):
        transcript, truth = run(federation, folder, on_round=on_round)
    return transcript, with_partition(truth, federation, dataset.known_token_words())


def with_partition(
    truth: GroundTruth, federation: Federation, token_words: TokenWords | None
) -> GroundTruth:
    """Return the ground truth with the partition of the examples, and the words of tokens."""
    index_of = {client: index for index, client in enumerate(federation.clients)}
    rows = {
        (number, party): federation.rows[number][index_of[party]]
        for number, party in _label_counts(truth)
        if party in index_of
    }
    return replace(truth, partition=Partition(federation.pool, rows, token_words))


def _label_counts(truth: GroundTruth) -> ByRound[Int[Tensor, " classes"]]:
    """Return the label counts of a run; empty if no client sent an update."""
    found = truth.facts.get(LabelCounts)
    return {} if found is None else found.counts


def knowledge(
    plan: Plan,
    *,
    arm: str | None = None,
    seed: int | None = None,
    resources: Resources | None = None,
) -> Knowledge:
    """Return the knowledge of the first threat's attacker; see `simulate` for the settings."""
    audit_inputs = load_inputs(plan, resources or Resources(), MemoryTensorCache())
    number = plan.seeds[0] if seed is None else seed
    attackers = audit_inputs.for_attackers(number)
    return attacker_knowledge(_select_arm(plan, arm), plan.threats[0], attackers)


def _select_arm(plan: Plan, name: str | None) -> ArmPlan:
    if name is None:
        return next(arm for arm in plan.arms if arm.is_reference)
    names = [arm.name for arm in plan.arms]
    if name not in names:
        raise PlanError(f"the plan has no arm {name!r}: choose from {', '.join(names)}")
    return plan.arms[names.index(name)]
