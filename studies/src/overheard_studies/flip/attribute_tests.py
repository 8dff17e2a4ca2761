"""All tests of one quadruple that infer the other class of its binary tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import final

import torch
from jaxtyping import Bool, Float
from pydantic import TypeAdapter
from torch import Tensor

from overheard.archive.reader import open_transcript
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import load_data, partition_for_plan
from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Update, Weights
from overheard.core.parties import SERVER, Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.data.partition.data_partition import DataPartition
from overheard.learning.devices.choice import choose_device
from overheard.learning.fitting.share_network import (
    FitSchedule,
)
from overheard.plans.plan import Plan
from overheard.questions.shift.estimators.trend_reader import TargetModels
from overheard.statistics.evenly_spaced import select_evenly_spaced
from overheard_studies.flip.classifiers import (
    AffinityTest,
    CollectionPair,
    fit_affinity_test,
    transfer_linear_svm,
    transfer_network,
)
from overheard_studies.runs import StudyRuns


@final
@dataclass(frozen=True, slots=True)
class BinaryTask:
    """One class against another, M_{A,B} in FLiP (arXiv 2410.19548), Section V-A.

    Args:
        primary: the class A, which the task is about.
        other: the class B, whose examples are all that is "not A".

    """

    primary: str
    other: str

    @property
    def key(self) -> str:
        """Name of the task in keys of values and in names of folders."""
        return f"{self.primary}-{self.other}"

    @property
    def classes(self) -> tuple[str, str]:
        """Return the classes by label: 0 = not A, 1 = A (equation (6))."""
        return (self.other, self.primary)


@final
@dataclass(frozen=True, slots=True)
class Quadruple:
    """Two primary classes, A1 and A2, and two other classes, B1 and B2.

    An attack learns to distinguish B1 from B2 in the federations of A1's tasks, and is tested
    on those of A2's tasks.

    Args:
        primary: A1 and A2.
        other: B1 and B2.

    """

    primary: tuple[str, str]
    other: tuple[str, str]

    @property
    def training_tasks(self) -> tuple[BinaryTask, BinaryTask]:
        """Return the tasks of A1 against B1 and against B2."""
        return self._tasks(self.primary[0])

    @property
    def test_tasks(self) -> tuple[BinaryTask, BinaryTask]:
        """Return the tasks of A2 against B1 and against B2."""
        return self._tasks(self.primary[1])

    @property
    def tasks(self) -> tuple[BinaryTask, ...]:
        """Return all four tasks, in the order of the paper's table."""
        return (*self.training_tasks, *self.test_tasks)

    def _tasks(self, primary: str) -> tuple[BinaryTask, BinaryTask]:
        first, second = self.other
        return BinaryTask(primary, first), BinaryTask(primary, second)


MAX_SETS = 100
"""Largest number of rounds whose distilled sets are read, as in the paper."""

MAX_MODELS = 20
"""Largest number of rounds whose models are read; the paper's has 78,000 parameters."""


@final
@dataclass(frozen=True, slots=True)
class TaskObservation:
    """The server's observation of one federation with one seed.

    Args:
        view: the server's view; under FLiP it includes models derived from distilled sets.

    """

    view: View

    def synthetic_inputs(self) -> Float[Tensor, "samples ..."]:
        """Return the server's synthetic inputs of all rounds but the first, which are noise."""
        sets = self.view.distilled_sets(SERVER)
        rounds = select_evenly_spaced(sorted(sets)[1:], MAX_SETS)
        return torch.cat([sets[number].inputs for number in rounds])

    def normalized_updates(self) -> Float[Tensor, "updates params"]:
        """Return the clients' updates, derived ones under FLiP, each with L2 norm 1."""
        vectors = [
            torch.cat([one.flatten() for one in update.delta.values()]).double()
            for sender in self.clients()
            for update in self._updates(sender)
        ]
        return torch.stack([one / one.norm().clamp(min=1e-12) for one in vectors])

    def client_models(self, sender: Party) -> Iterator[Weights]:
        """Iterate over a client's trained models by round."""
        view = self.view.during(
            select_evenly_spaced(self.view.rounds_with_updates(sender), MAX_MODELS)
        )
        return TargetModels(view, sender).models()

    def clients(self) -> tuple[Party, ...]:
        """Return the clients that sent messages."""
        return self.view.senders()

    def _updates(self, sender: Party) -> list[Update]:
        updates = self.view.updates(sender)
        return [updates[number] for number in select_evenly_spaced(sorted(updates), MAX_MODELS)]


def observe_task(runs: StudyRuns, name: str, arm: str, seed: int) -> TaskObservation:
    """Return what the server observes in one run, with models derived from distilled sets.

    Args:
        runs: the runs of the experiment.
        name: name of the audit's folder.
        arm: name of the arm.
        seed: seed of the run.

    """
    run = AuditFolder(runs.folder / name).run_path(arm, seed)
    rebuilt = run / "rebuilt"
    folder = rebuilt if rebuilt.is_dir() else run
    return TaskObservation(open_transcript(folder).seen_by(SERVER))


SAMPLES = "samples"
OTHER_START = "samples_other_start"
IMAGES = "images"
IMAGES_OF_B = "images_of_b"
UPDATES = "updates_{}"
AFFINITY = "pushed_{}"
AFFINITY_EARLY, AFFINITY_LATE = "pushed_flip_early", "pushed_flip_late"

TESTS: Mapping[str, str] = MappingProxyType(
    {
        SAMPLES: "the paper's attack on synthetic samples, federations with the same start",
        OTHER_START: "the paper's attack, trained on federations with another start",
        IMAGES: "control: the same attack on the clients' raw images, about 75 % at best",
        IMAGES_OF_B: "control: the same, on the images of B1 and B2 only",
        UPDATES.format("fedavg"): "control: a linear classifier on the updates of FedAvg",
        UPDATES.format("flip"): "a linear classifier on updates derived from the samples",
        AFFINITY.format("fedavg"): "control: affinity attack on the models of FedAvg",
        AFFINITY.format("flip"): "affinity attack on the models that FLiP's samples train",
        AFFINITY_EARLY: "affinity attack, first quarter of the rounds only",
        AFFINITY_LATE: "affinity attack, last quarter of the rounds only",
    }
)
"""Descriptions of the tests."""

PER_CLIENT_TESTS = frozenset(test for test in TESTS if test.startswith("pushed"))
"""The tests that decide once per client, from everything it sent."""

QUARTER = 4


@final
@dataclass(frozen=True, slots=True)
class QuadrupleOutcome:
    """The number of correct decisions of a test about one federation.

    Args:
        test: name of the test, in `TESTS`.
        task: key of the federation's task.
        seed: seed of the federation's run.
        hits: number of correct decisions.
        trials: number of decisions.

    """

    test: str
    task: str
    seed: int
    hits: int
    trials: int


@final
@dataclass(frozen=True, slots=True)
class AttributeTests:
    """All tests of a quadruple.

    Args:
        runs: audits of its tasks, by their keys.
        quadruple: classes of the tasks.
        arms: names of the plan's FedAvg arm and of its FLiP arm.
        schedule: schedule of the networks that the attacker trains.

    """

    runs: StudyRuns
    quadruple: Quadruple
    arms: tuple[str, str]
    schedule: FitSchedule

    def run_tests(self, seed: int) -> Iterator[QuadrupleOutcome]:
        """Run every test on the federations of this seed."""
        fedavg, flip = self.arms
        test_sets = self._sets(self.quadruple.test_tasks, flip, seed)
        training_sets = self._sets(self.quadruple.training_tasks, flip, seed)
        yield from self._by_network(SAMPLES, seed, training_sets, test_sets)
        other_seed = self._other_seed(seed)
        if other_seed is not None:
            other_sets = self._sets(self.quadruple.training_tasks, flip, other_seed)
            yield from self._by_network(OTHER_START, seed, other_sets, test_sets)
        partitions = self._partitions(self.quadruple.test_tasks, seed)
        yield from self._of_images(seed, partitions)
        affinity_test = self._affinity_test(seed, partitions)
        for arm, name in ((fedavg, "fedavg"), (flip, "flip")):
            yield from self._by_updates(arm, name, seed)
            yield from self._by_affinity(arm, name, seed, affinity_test)

    def _by_network(
        self, test: str, seed: int, training_sets: CollectionPair, test_sets: CollectionPair
    ) -> Iterator[QuadrupleOutcome]:
        is_right = transfer_network(
            self._build_model(),
            training_sets,
            test_sets,
            self.schedule,
            self._seed(seed, test),
            self._device(),
        )
        yield from self._answers(test, seed, is_right)

    def _of_images(
        self, seed: int, partitions: tuple[DataPartition, DataPartition]
    ) -> Iterator[QuadrupleOutcome]:
        """Test raw images, and those of B1 and B2 alone, as A2's are in both federations."""
        training_images = [
            _all_examples(one).inputs
            for one in self._partitions(self.quadruple.training_tasks, seed)
        ]
        first, second = map(_all_examples, partitions)
        is_right = transfer_network(
            self._build_model(),
            (training_images[0], training_images[1]),
            (first.inputs, second.inputs),
            self.schedule,
            self._seed(seed, IMAGES),
            self._device(),
        )
        yield from self._answers(IMAGES, seed, is_right)
        images_of_b = is_right[0][first.labels == 0], is_right[1][second.labels == 0]
        yield from self._answers(IMAGES_OF_B, seed, images_of_b)

    def _by_updates(self, arm: str, name: str, seed: int) -> Iterator[QuadrupleOutcome]:
        training_updates, test_updates = (
            [self._observe(task, arm, seed).normalized_updates() for task in tasks]
            for tasks in (self.quadruple.training_tasks, self.quadruple.test_tasks)
        )
        is_right = transfer_linear_svm(
            (training_updates[0], training_updates[1]),
            (test_updates[0], test_updates[1]),
            self._seed(seed, UPDATES.format(name)),
        )
        yield from self._answers(UPDATES.format(name), seed, is_right)

    def _by_affinity(
        self, arm: str, name: str, seed: int, affinity_test: AffinityTest
    ) -> Iterator[QuadrupleOutcome]:
        observations = [self._observe(task, arm, seed) for task in self.quadruple.test_tasks]
        affinities = [
            torch.stack(
                [
                    affinity_test.measure_affinities(one.client_models(client))
                    for client in one.clients()
                ]
            )
            for one in observations
        ]  # (clients, rounds), twice
        quarter = max(1, affinities[0].shape[1] // QUARTER)
        parts = {AFFINITY.format(name): slice(None)}
        if name == "flip":
            parts |= {AFFINITY_EARLY: slice(quarter), AFFINITY_LATE: slice(-quarter, None)}
        for test, part in parts.items():
            first, second = (
                torch.tensor([affinity_test.decides_first(one[part]) for one in clients])
                for clients in affinities
            )
            yield from self._answers(test, seed, (first, ~second))

    def _affinity_test(
        self, seed: int, partitions: tuple[DataPartition, DataPartition]
    ) -> AffinityTest:
        return fit_affinity_test(
            self._build_model(),
            (partitions[0].auxiliary, partitions[1].auxiliary),
            self.schedule,
            self._seed(seed, "yardstick"),
            self._device(),
        )

    def _answers(
        self,
        test: str,
        seed: int,
        is_right: tuple[Bool[Tensor, " first"], Bool[Tensor, " second"]],
    ) -> Iterator[QuadrupleOutcome]:
        for task, hits in zip(self.quadruple.test_tasks, is_right, strict=True):
            yield QuadrupleOutcome(test, task.key, seed, int(hits.sum()), len(hits))

    def _sets(
        self, tasks: tuple[BinaryTask, BinaryTask], arm: str, seed: int
    ) -> CollectionPair:
        first, second = tasks
        return self._observe(first, arm, seed).synthetic_inputs(), self._observe(
            second, arm, seed
        ).synthetic_inputs()

    def _observe(self, task: BinaryTask, arm: str, seed: int) -> TaskObservation:
        return observe_task(self.runs, task.key, arm, seed)

    def _partitions(
        self, tasks: tuple[BinaryTask, BinaryTask], seed: int
    ) -> tuple[DataPartition, DataPartition]:
        plans = [self.runs.plans[task.key] for task in tasks]
        first, second = (
            partition_for_plan(plan, load_data(plan, self.runs.resources), seed)
            for plan in plans
        )
        return first, second

    def _other_seed(self, seed: int) -> int | None:
        """Return the seed after this one; after the last, the first."""
        seeds = self._plan().seeds
        return None if len(seeds) < 2 else seeds[(seeds.index(seed) + 1) % len(seeds)]

    def _build_model(self) -> BuildModel:
        plan = self._plan()
        task = load_data(plan, self.runs.resources).task
        return partial(plan.training.model.build, task)

    def _plan(self) -> Plan:
        return self.runs.plans[self.quadruple.test_tasks[0].key]

    def _device(self) -> str:
        return str(choose_device(self.runs.resources.device))

    def _seed(self, seed: int, name: str) -> Seed:
        return Seed(seed).child("attributes", repr(self.quadruple), name)


def _all_examples(partition: DataPartition) -> Examples:
    """Return the images of all clients."""
    return partition.pool.take(torch.cat(partition.rows[0]))


OUTCOMES = TypeAdapter(tuple[str, tuple[QuadrupleOutcome, ...]])
"""The file that keeps the outcomes of a row, with the settings that determine them."""
