"""What an audit draws on: data sets, partitions, resources; all seen to before it begins."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from overheard.auditing.auxiliary import drawn_from
from overheard.auditing.work import control_of
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.means import Shelf
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset, DataSource
from overheard.data.partition.deal import Auxiliary, Deal, deal
from overheard.data.reading.folder import data_folder
from overheard.learning.device import DeviceName
from overheard.learning.train import Engine
from overheard.plans.plan import Plan

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
            examples_from_elsewhere(plan, plan.seeds[0], threat.auxiliary_from, supplies)
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
        people=data.people,
        is_exchanged=is_control and control_of(plan) == "permutation",
        background=data.background,
        candidates=data.candidates,
    )


def _wanted(plan: Plan) -> Auxiliary:
    return Auxiliary(per_class=plan.data.auxiliary_per_class, total=plan.data.auxiliary)


def examples_from_elsewhere(
    plan: Plan, seed: int, source: DataSource, supplies: Supplies
) -> Examples:
    """Draw auxiliary examples from another data set than the audited one."""
    return drawn_from(
        supplies.elsewhere[source],
        supplies.dataset,
        _wanted(plan),
        Seed(seed).child("elsewhere"),
        f"auxiliary_from {source.name}",
    )
