"""The inputs of an audit: data sets, partitions and resources, loaded before it begins."""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.auditing.run_kinds import PLANNED, RunKind, kinds_drawn_together
from overheard.core.compute_settings import TensorCache
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import KnownFact
from overheard.core.parties import client
from overheard.core.recipe import LOSSES_OF_TASKS
from overheard.core.seeds import Seed
from overheard.core.task import OUTPUTS_OF, Task
from overheard.data.content_hash import content_hashes, hash_contents
from overheard.data.dataset import Dataset, DataSource
from overheard.data.dataset_digest import dataset_digest
from overheard.data.datasets.custom import Own
from overheard.data.draws import ScarceLabelError, apportion, draw_stratified
from overheard.data.partition.data_partition import DataPartition, draw_partition
from overheard.data.partition.known_facts import drawn_facts
from overheard.data.partition.redrawn_partitions import redraw_label_counts
from overheard.data.partition.reserved_examples import AuxiliarySize
from overheard.data.partition.schedule import Schedule
from overheard.data.reading.folder import data_folder
from overheard.findings.planned_sizes import REDRAWN_PARTITIONS
from overheard.learning.devices.choice import DeviceName, check_device
from overheard.learning.train import Engine
from overheard.plans.plan import Plan, ThreatPlan

RedrawnCounts = tuple[tuple[Int[Tensor, "partitions classes"], ...], ...]

MAX_CACHED_DISTORTED = 64
"""Cached partitions with distorted examples: those of 32 runs and their controls, which are
trained together."""

MAX_DRAWS = 20
"""Draws of the examples of a seed, until all of its runs have enough of each label."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Where the data are, and the compute resources.

    Args:
        data: folder with data sets; None = the folder in OVERHEARD_DATA, else downloads.
        device: where to train: "cpu", "cuda", or "auto" = on a GPU where that saves time.
        workers: processes to train in; None = one per core.
        engine: how cohorts are trained.
        cluster: address of a Ray cluster that trains the attackers' virtual clients instead of
            local processes; "local" starts one on this machine; None = no cluster.
        simulation_cache: folder in which several audits share the cached results of
            simulations; None = each audit has its own in its output folder.

    """

    data: Path | None = None
    device: DeviceName = "auto"
    workers: int | None = None
    engine: Engine = "auto"
    cluster: str | None = None
    simulation_cache: Path | None = None


@final
@dataclass(frozen=True, slots=True)
class AttackerData:
    """The data of one seed that an attacker may hold; nothing of a client's.

    Args:
        task: what the model predicts.
        auxiliary: labelled examples that no client holds.
        elsewhere: examples from other data sets, by the repr of their source.
        background: public examples that everyone has; None = there are none.
        digests: the digest of each data set of the plan by its name, the audited one first.

    """

    task: Task
    auxiliary: Examples
    elsewhere: Mapping[str, Examples]
    background: Examples | None
    digests: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class AttackerInputs:
    """What the knowledge of all attackers on the runs of one seed is made from.

    Args:
        plan: the plan of the audit.
        seed: the seed.
        data: the data that an attacker may hold.
        facts: what it may know of single subjects.
        resources: the compute resources.
        cache: cache for the results of simulations.

    """

    plan: Plan
    seed: int
    data: AttackerData
    facts: Facts[KnownFact]
    resources: Resources
    cache: TensorCache


@dataclass(frozen=True, slots=True)
class AuditInputs:
    """The inputs of a plan's audit.

    Args:
        plan: the audited plan.
        dataset: the audited data set.
        auxiliary_datasets: by source, the other data sets that auxiliary examples come from.
        resources: the compute resources.
        cache: cache for the results of simulations.
        canaries_at_odds: whether canaries were assigned as older versions did; see
            `data.partition.candidates.assign_canaries`.

    """

    plan: Plan
    dataset: Dataset
    auxiliary_datasets: Mapping[DataSource, Dataset]
    resources: Resources
    cache: TensorCache
    canaries_at_odds: bool = False
    _partitions: "OrderedDict[tuple[int, RunKind], DataPartition]" = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    _data_seeds: "dict[int, Seed]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _redrawn: "dict[tuple[int, frozenset[int]], RedrawnCounts]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _digests: "dict[str, str]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _attackers: "dict[int, AttackerInputs]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def with_rounds(self, rounds: int) -> "AuditInputs":
        """Return the inputs of the same plan with another number of rounds."""
        training = self.plan.training.model_copy(update={"rounds": rounds})
        return replace(self, plan=self.plan.model_copy(update={"training": training}))

    def data_digests(self) -> Mapping[str, str]:
        """Return the digest of each data set, the audited one first; computed once.

        A data set has the name of its file or function, or else the repr of its source, as
        every further one of the same file.
        """
        if not self._digests:
            sources = {self.plan.data.source: self.dataset, **self.auxiliary_datasets}
            for source, dataset in sources.items():
                name = _name_source(source)
                # One file may be read in two ways.
                name = repr(source) if name in self._digests else name
                self._digests[name] = dataset_digest(dataset)
        return self._digests

    def for_attackers(self, seed: int) -> AttackerInputs:
        """Return what the knowledge of attackers is made from; drawn once a seed."""
        if seed not in self._attackers:
            self._attackers[seed] = AttackerInputs(
                self.plan,
                seed,
                _attacker_data(self, seed),
                _known_facts(self, seed),
                self.resources,
                self.cache,
            )
        return self._attackers[seed]

    def redrawn_counts(self, seed: int, threat: ThreatPlan) -> RedrawnCounts:
        """Return label counts of partitions drawn anew, by round and then by client.

        Clients that observe keep their examples. Empty unless a question of the threat needs
        them, and the split draws label shares.
        """
        if not any(question.needs_redrawn_partitions for question in threat.questions()):
            return ()
        observing = frozenset(
            number
            for number in range(self.plan.data.clients)
            if client(number) in threat.observer_parties
        )
        key = (seed, observing)
        if key not in self._redrawn:
            self._redrawn[key] = _redraw_for_plan(self, seed, observing)
        return self._redrawn[key]

    def partition(self, seed: int, kind: RunKind = PLANNED) -> DataPartition:
        """Return the partition for a seed; it is computed once for all arms and threats.

        Partitions whose examples are rows of the data set are all cached. Those with distorted
        examples would fill the memory, so only the last `MAX_CACHED_DISTORTED` of them are
        cached, or those of the last seed if they are more.
        """
        key = (seed, kind)
        if key not in self._partitions:
            self._data_seeds[seed], drawn = partitions_of_seed(
                self.plan, self.dataset, seed, kind, canaries_at_odds=self.canaries_at_odds
            )
            self._partitions.update({(seed, one): held for one, held in drawn.items()})
            large = [k for k, one in self._partitions.items() if not self._shares_memory(one)]
            for oldest in large[: -max(MAX_CACHED_DISTORTED, len(drawn))]:
                del self._partitions[oldest]
        return self._partitions[key]

    def data_seed(self, seed: int) -> Seed:
        """Return the seed of the examples of the runs of a seed: see `partitions_of_seed`."""
        if seed not in self._data_seeds:
            self.partition(seed)
        return self._data_seeds[seed]

    def _shares_memory(self, partition: DataPartition) -> bool:
        return partition.pool.inputs is self.dataset.train.inputs


def _attacker_data(audit_inputs: AuditInputs, seed: int) -> AttackerData:
    """Return the data of a seed that an attacker may hold."""
    plan, dataset = audit_inputs.plan, audit_inputs.dataset
    partition = audit_inputs.partition(seed)
    sources = {threat.auxiliary_from for threat in plan.threats} - {None}
    return AttackerData(
        dataset.task,
        partition.auxiliary,
        {
            repr(source): draw_auxiliary_from(plan, seed, source, audit_inputs)
            for source in sources
            if source is not None
        },
        partition.background,
        audit_inputs.data_digests(),
    )


def _known_facts(audit_inputs: AuditInputs, seed: int) -> Facts[KnownFact]:
    """Return what attackers know of single subjects, by the questions of the plan."""
    dataset, partition = audit_inputs.dataset, audit_inputs.partition(seed)
    candidates, known = audit_inputs.plan.data.candidates, Facts[KnownFact]()
    are_crafted = candidates is not None and candidates.canaries == "crafted"
    drawn = drawn_facts(dataset, partition, are_crafted=are_crafted)
    for question in audit_inputs.plan.questions():
        made = question.make_known_facts(
            dataset, partition, Seed(seed).child("facts", question.name)
        )
        for fact in (*drawn, *made):
            if type(fact) in question.gives:
                known = known.having(fact)
    return known


def _name_source(source: DataSource) -> str:
    return source.reference if isinstance(source, Own) else repr(source)


def load_inputs(plan: Plan, resources: Resources, cache: TensorCache) -> AuditInputs:
    """Load all data sets of a plan, and check that its auxiliary examples can be drawn.

    Raises:
        DataError: if a data set is missing or damaged.
        PlanError: if auxiliary examples cannot be drawn from the named data set, or a GPU is
            requested and there is none.

    """
    check_device(resources.device)
    dataset = load_data(plan, resources)
    check_loss(plan, dataset.task)
    sources = [threat.auxiliary_from for threat in plan.threats]
    loaded = {
        source: source.load(data_folder(resources.data))
        for source in dict.fromkeys(sources)
        if source is not None
    }
    audit_inputs = AuditInputs(plan, dataset, loaded, resources, cache)
    for threat in plan.threats:
        if threat.auxiliary_from is not None:
            draw_auxiliary_from(plan, plan.seeds[0], threat.auxiliary_from, audit_inputs)
    return audit_inputs


def check_loss(plan: Plan, task: Task) -> None:
    """Check that clients train with a loss of the task.

    Raises:
        PlanError: if they do not; the message names a loss that fits.

    """
    possible = LOSSES_OF_TASKS[task.kind]
    recipes = [("training.loss", plan.training.recipe)]
    for threat in plan.threats:
        assumed = threat.virtual.prior.recipes
        recipes += [("loss of threats.virtual.recipes", recipe) for recipe in assumed]
    for place, recipe in recipes:
        if recipe.loss not in possible:
            raise PlanError(
                f"{place}: {recipe.loss} does not fit a {task.kind.replace('_', '-')} task: "
                f"set it to {' or '.join(possible)}"
            )


def load_data(plan: Plan, resources: Resources) -> Dataset:
    """Load the plan's data set."""
    return plan.data.source.load(data_folder(resources.data))


def refuse_plan_without_split(plan: Plan) -> None:
    """Check that the plan partitions its data among clients.

    Raises:
        PlanError: if it does not.

    """
    if plan.data.split_settings is None:
        raise PlanError(
            "the plan has no clients to simulate and is for recordings only: name the folder "
            "of a recording with --transcript, or set data.clients, data.examples and "
            "data.split"
        )


def partition_for_plan(
    plan: Plan, dataset: Dataset, seed: int, kind: RunKind = PLANNED
) -> DataPartition:
    """Partition the examples under a seed: see `partitions_of_seed`."""
    _, drawn = partitions_of_seed(plan, dataset, seed, kind)
    return drawn[kind]


def partitions_of_seed(
    plan: Plan,
    dataset: Dataset,
    seed: int,
    kind: RunKind = PLANNED,
    *,
    canaries_at_odds: bool = False,
) -> tuple[Seed, Mapping[RunKind, DataPartition]]:
    """Partition the examples for the runs of a seed; the partitions are the same in every arm.

    Auxiliary and test examples are the same in a run and its controls. So are the clients'
    examples in round 0, unless an attack asks for identities: see `Schedule.control`.

    Draws of one seed may need more examples of a label than there are, although those of other
    seeds do not. The examples of all runs of the seed are then drawn again. All are, so that
    controls stay controls: each draw is kept or not for all of them.

    Args:
        plan: the plan.
        dataset: its data set.
        seed: the seed.
        kind: a run that is drawn too, even if no attack asks for it.
        canaries_at_odds: whether canaries are assigned as older versions did.

    Returns:
        The seed of the draws, and the partition of each run.

    Raises:
        PlanError: if no draw has enough examples for all runs.

    """
    kinds, refusals = dict.fromkeys((*kinds_drawn_together(plan), kind)), dict[str, PlanError]()
    for attempt in range(MAX_DRAWS):
        data_seed = Seed(seed).child("data", *([attempt] if attempt else []))
        try:
            return data_seed, {
                one: _partition(plan, dataset, data_seed, one, at_odds=canaries_at_odds)
                for one in kinds
            }
        except PlanError as error:
            refusals.setdefault(str(error), error)
    message, first = next(iter(refusals.items()))
    if len(refusals) == 1:  # It does not depend on the draws.
        raise first
    raise PlanError(f"seed {seed}: in {MAX_DRAWS} draws of the data, {message}") from first


def _partition(
    plan: Plan, dataset: Dataset, data_seed: Seed, kind: RunKind, *, at_odds: bool
) -> DataPartition:
    """Partition the examples for one run."""
    data = plan.data
    schedule = _schedule(plan, kind)
    try:
        return draw_partition(
            dataset,
            data.split_settings,
            clients=data.clients,
            auxiliary=plan.data.auxiliary_size,
            test=data.test,
            schedule=schedule,
            seed=data_seed,
            known_users=data.people,
            is_permuted=kind.control == "permutation",
            background=data.background,
            candidates=data.candidates,
            canaries_at_odds=at_odds,
        )
    except ScarceLabelError as error:
        label = repr(dataset.task.class_names[error.label])
        user = str(error.user)
        if error.user is not None and dataset.user_names:
            user = repr(dataset.user_names[error.user])
        raise PlanError(error.message(label, user)) from error


def _redraw_for_plan(
    audit_inputs: AuditInputs, seed: int, observing: Collection[int]
) -> RedrawnCounts:
    plan = audit_inputs.plan
    data, settings = plan.data, plan.data.split_settings
    if settings is None or settings.split.has_fixed_shares:
        return ()
    try:
        return redraw_label_counts(
            audit_inputs.dataset,
            settings,
            REDRAWN_PARTITIONS,
            clients=data.clients,
            auxiliary=plan.data.auxiliary_size,
            schedule=plan.schedule,
            seed=audit_inputs.data_seed(seed),
            known_users=data.people,
            candidates=data.candidates,
            observing=observing,
            all_seeds=[audit_inputs.data_seed(one) for one in plan.seeds] if observing else (),
        )
    except PlanError:
        return ()  # the pool is too small; claims are then compared with permuted clients


def _schedule(plan: Plan, kind: RunKind) -> Schedule:
    """Return when clients replace their examples in the planned run, or in a control."""
    if kind.draws == "":
        return plan.schedule
    return plan.schedule.control(kind.draws, kind.number)


def draw_auxiliary_from(
    plan: Plan, seed: int, source: DataSource, audit_inputs: AuditInputs
) -> Examples:
    """Draw auxiliary examples from a data set other than the audited one."""
    return draw_external_auxiliary(
        audit_inputs.auxiliary_datasets[source],
        audit_inputs.dataset,
        plan.data.auxiliary_size,
        Seed(seed).child("elsewhere"),
        f"auxiliary_from {source.name}",
    )


def draw_external_auxiliary(
    source: Dataset, audited: Dataset, size: AuxiliarySize, seed: Seed, place: str
) -> Examples:
    """Draw auxiliary examples from another data set; skip those in the audited data.

    Args:
        source: the data set to draw from; its training part is used.
        audited: the audited data set; no example of its training or test part is drawn.
        size: how many examples.
        seed: the seed of the draw.
        place: where the plan names the source, for error messages.

    Raises:
        PlanError: if the two data sets have different tasks, or there are too few examples.

    """
    _check_same_task(source, audited, place)
    contents, pool = hash_contents(audited), source.train
    excluded = torch.cat([contents.train, contents.test])
    free = pool.take(~torch.isin(content_hashes(pool.inputs), excluded))
    classes = audited.task.classes
    if size.per_class is not None:
        counts = torch.full((classes,), size.per_class)
    else:
        counts = apportion(pool.label_counts(classes).double(), size.total or 0)
    available = free.label_counts(classes)
    short = (counts > available).nonzero().flatten().tolist()
    if short:
        label = short[0]
        name = audited.task.class_names[label]
        raise PlanError(
            f"{place}: {int(counts[label])} examples with label {name!r} are needed, but the "
            f"data set has only {int(available[label])} that are not in the audited data: ask "
            "for fewer auxiliary examples, or name another data set"
        )
    (rows,) = draw_stratified(free.labels, counts[None], classes, seed)
    return free.take(rows)


def _check_same_task(source: Dataset, audited: Dataset, place: str) -> None:
    found, expected = source.task, audited.task
    forms = [(one.shape, one.outputs, one.kind, one.vocabulary) for one in (found, expected)]
    if forms[0] != forms[1]:
        raise PlanError(
            f"{place}: has examples of shape {found.shape}, {found.outputs} "
            f"{OUTPUTS_OF[found.kind]} and vocabulary {found.vocabulary}, but the audited data "
            f"have {expected.shape}, {expected.outputs} {OUTPUTS_OF[expected.kind]} and "
            f"{expected.vocabulary}: name a data set of the same form"
        )
