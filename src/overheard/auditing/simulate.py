"""Turns a plan into federations, runs them, and says what an attacker may know."""

import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from overheard.auditing.auxiliary import drawn_from
from overheard.auditing.work import control_of
from overheard.core.defense import Training
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers
from overheard.core.means import Means, MemoryShelf, Shelf
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth, Partition
from overheard.data.dataset import Dataset, DataSource
from overheard.data.distortion import distorted
from overheard.data.partition.deal import Auxiliary, Deal, deal
from overheard.data.reading.folder import data_folder
from overheard.federation.run import Federation, run
from overheard.learning.device import DeviceName, choose_device
from overheard.learning.train import Engine
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan

MOST_DISTORTED = 64
"""Partitions with distorted examples that are kept: those of 32 runs and their controls, which
are trained side by side."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Where the data lie and what the work is done on.

    Args:
        data: folder with data sets; None = what OVERHEARD_DATA says, else downloads.
        device: "auto", "cpu" or "cuda".
        workers: processes to train in; None = as many as there are cores.
        engine: how cohorts are trained.
        cluster: address of a Ray cluster that trains the virtual clients of attackers in place
            of processes here; "local" starts one on this machine; None = no cluster.
        bank: folder that several audits share for what is read off virtual clients, so that
            none trains again what another did; None = each in its own output folder.

    """

    data: Path | None = None
    device: DeviceName = "auto"
    workers: int | None = None
    engine: Engine = "auto"
    cluster: str | None = None
    bank: Path | None = None


@dataclass(frozen=True, slots=True)
class Supplies:
    """What the attackers of a plan draw on and work with.

    Args:
        plan: what they are the supplies of.
        dataset: the audited one.
        elsewhere: those that auxiliary examples come from in place of it, by source.
        resources: what the work is done on.
        shelf: where what is read off virtual clients is kept.

    """

    plan: Plan
    dataset: Dataset
    elsewhere: Mapping[DataSource, Dataset]
    resources: Resources
    shelf: Shelf
    _partitions: "OrderedDict[tuple[int, bool], Deal]" = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )

    def partition(self, seed: int, is_control: bool = False) -> Deal:
        """Who gets which examples: worked out once for all arms and threats.

        Partitions whose examples are rows of the data set are all kept. Those with distorted
        examples of their own would fill the memory: of them the last `MOST_DISTORTED` are kept.
        """
        key = (seed, is_control)
        if key not in self._partitions:
            self._partitions[key] = deal_examples(self.plan, self.dataset, seed, is_control)
            own = [k for k, kept in self._partitions.items() if not self._shares(kept)]
            for oldest in own[:-MOST_DISTORTED]:
                del self._partitions[oldest]
        return self._partitions[key]

    def _shares(self, partition: Deal) -> bool:
        return partition.pool.inputs is self.dataset.train.inputs


def supply(plan: Plan, resources: Resources, shelf: Shelf) -> Supplies:
    """Load all data sets that a plan names, and see that its attackers can have their examples.

    Raises:
        DataError: if one is missing or damaged.
        PlanError: if auxiliary examples cannot come from where they are to come from.

    """
    dataset = load_data(plan, resources)
    sources = [threat.auxiliary_from for threat in plan.threats]
    loaded = {
        source: source.load(data_folder(resources.data))
        for source in dict.fromkeys(sources)
        if source is not None
    }
    supplies = Supplies(plan, dataset, loaded, resources, shelf)
    for threat in plan.threats:
        if threat.auxiliary_from is not None:
            _from_elsewhere(plan, plan.seeds[0], threat.auxiliary_from, supplies)
    return supplies


def load_data(plan: Plan, resources: Resources) -> Dataset:
    """The data set that the plan names."""
    return plan.data.source.load(data_folder(resources.data))


def refuse_to_simulate_nothing(plan: Plan) -> None:
    """See that the plan says who holds what.

    Raises:
        PlanError: if it does not.

    """
    if plan.data.shared_out is None:
        raise PlanError(
            "the plan simulates nothing, it is for recordings: give the folder of one by "
            "--transcript, or data.clients, data.examples and data.split"
        )


def deal_examples(plan: Plan, dataset: Dataset, seed: int, is_control: bool = False) -> Deal:
    """Who gets which examples under this seed; the same in every arm.

    The attacker and the test have the same in the run and in its control. Up to the first shift
    clients do too, unless some attack asks who they are: see `auditing.work.controls`.
    """
    data = plan.data
    return deal(
        dataset,
        data.shared_out,
        clients=data.clients,
        auxiliary=_wanted(plan),
        test=data.test,
        schedule=plan.schedule.control() if is_control else plan.schedule,
        seed=Seed(seed).child("data"),
        people=None if data.people is None else data.people.people,
        is_exchanged=is_control and control_of(plan) == "permutation",
        background=data.background,
        candidates=data.candidates,
    )


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


def knowledge_of(
    plan: Plan, arm: ArmPlan, seed: int, supplies: Supplies, threat: ThreatPlan
) -> Knowledge:
    """What the attacker of a threat knows before it listens to this arm and seed."""
    knows, virtual, resources = threat.knows, threat.virtual, supplies.resources
    dealt = supplies.partition(seed)
    auxiliary = _auxiliary(plan, seed, threat, supplies, dealt)
    training = _training_known(plan, threat, arm, plan.training.recipe, supplies.dataset)
    guesses = [
        _training_known(plan, threat, arm, guess, supplies.dataset).recipe
        for guess in virtual.prior.recipes
    ]
    return Knowledge(
        classes=supplies.dataset.task.classes,
        build_model=training.build_model if "model" in knows else None,
        auxiliary=auxiliary if "auxiliary" in knows and len(auxiliary) else None,
        recipe=training.recipe if "recipe" in knows else None,
        defenses=arm.defenses if "defenses" in knows else None,
        prior=replace(virtual.prior, recipes=tuple(guesses)),
        means=Means(
            seed=Seed(seed).child("bank"),
            virtual_clients=virtual.clients,
            shelf=supplies.shelf,
            device=str(choose_device(resources.device)),
            workers=resources.workers,
            cluster=resources.cluster,
        ),
        people=KnownUsers() if dealt.who is None else dealt.who.known,
        background=dealt.background,
        candidates=dealt.candidates,
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
    return knowledge_of(plan, _arm(plan, arm), number, supplies, plan.threats[0])


def _arm(plan: Plan, name: str | None) -> ArmPlan:
    if name is None:
        return next(arm for arm in plan.arms if not arm.defenses and arm.distillation is None)
    names = [arm.name for arm in plan.arms]
    if name not in names:
        raise PlanError(f"the plan has no arm {name!r}; it has {', '.join(names)}")
    return plan.arms[names.index(name)]


def _training_known(
    plan: Plan, threat: ThreatPlan, arm: ArmPlan, recipe: Recipe, dataset: Dataset
) -> Training:
    """Model and recipe as an attacker takes them to be: changed by defenses that it knows."""
    training = Training(partial(plan.training.model.build, dataset.task), recipe)
    if "defenses" in threat.knows:
        for defense in arm.defenses:
            training = defense.on_training(training)
    return training


def _wanted(plan: Plan) -> Auxiliary:
    return Auxiliary(per_class=plan.data.auxiliary_per_class, total=plan.data.auxiliary)


def _auxiliary(
    plan: Plan, seed: int, threat: ThreatPlan, supplies: Supplies, dealt: Deal
) -> Examples:
    """The attacker's own examples, as its threat has them come about."""
    if threat.auxiliary_from is None:
        auxiliary = dealt.auxiliary
    else:
        auxiliary = _from_elsewhere(plan, seed, threat.auxiliary_from, supplies)
    if not threat.auxiliary_shift or not len(auxiliary):
        return auxiliary
    draws = Seed(seed).child("distortion")
    return distorted(auxiliary, supplies.dataset.task, threat.auxiliary_shift, draws)


def _from_elsewhere(plan: Plan, seed: int, source: DataSource, supplies: Supplies) -> Examples:
    return drawn_from(
        supplies.elsewhere[source],
        supplies.dataset,
        _wanted(plan),
        Seed(seed).child("elsewhere"),
        f"auxiliary_from {source.name}",
    )
