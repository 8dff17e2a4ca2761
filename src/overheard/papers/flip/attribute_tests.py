"""Asks of one quadruple in every way which class stood beside the primary one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import final

import torch
from jaxtyping import Bool
from torch import Tensor

from overheard.auditing.supplies import deal_examples, load_data
from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.data.partition.deal import Deal
from overheard.learning.device import choose_device
from overheard.learning.fitting.fit import FitSchedule
from overheard.papers.flip.pushed_away import AffinityYardstick, yardstick
from overheard.papers.flip.quadruple import BinaryTask, Quadruple
from overheard.papers.flip.task_heard import TaskHeard, heard
from overheard.papers.flip.transfer import Pair, told_by_network, told_by_plane
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan

SAMPLES = "samples"
OTHER_START = "samples_other_start"
IMAGES = "images"
IMAGES_OF_B = "images_of_b"
UPDATES = "updates_{}"
PUSHED = "pushed_{}"
EARLY, LATE = "pushed_flip_early", "pushed_flip_late"

TESTS: Mapping[str, str] = MappingProxyType(
    {
        SAMPLES: "the paper's attack on synthetic samples, all four federations begun alike",
        OTHER_START: "the paper's attack, learned from federations that began otherwise",
        IMAGES: "control: the same attack on the clients' raw images, about 75 % at best",
        IMAGES_OF_B: "control: the same, asked of the images of B1 and B2 alone",
        UPDATES.format("fedavg"): "control: the same question of the updates of FedAvg",
        UPDATES.format("flip"): "the same question of what models the samples train",
        PUSHED.format("fedavg"): "control: ours, by the models of FedAvg",
        PUSHED.format("flip"): "ours, by the models that FLiP's samples train",
        EARLY: "ours, the first quarter of the rounds alone",
        LATE: "ours, the last quarter of the rounds alone",
    }
)
"""What is tried, in words."""

DECISIONS = frozenset(test for test in TESTS if test.startswith("pushed"))
"""Those that decide once a client, from all that it sent."""

QUARTER = 4


@final
@dataclass(frozen=True, slots=True)
class QuadrupleAnswer:
    """How often a test was right about one federation.

    Args:
        test: which, of `TESTS`.
        task: the federation's, by key.
        seed: of its run.
        hits: answers that were right.
        trials: answers.

    """

    test: str
    task: str
    seed: int
    hits: int
    trials: int


@final
@dataclass(frozen=True, slots=True)
class AttributeTests:
    """Every test of a quadruple.

    Args:
        runs: the audits of its tasks, by their keys.
        quadruple: its classes.
        arms: the plan's arm of FedAvg, and that of FLiP.
        schedule: of the networks that the attacker trains.

    """

    runs: Runs
    quadruple: Quadruple
    arms: tuple[str, str]
    schedule: FitSchedule

    def answers(self, seed: int) -> Iterator[QuadrupleAnswer]:
        """Of the federations of this seed that are tested, test by test."""
        fedavg, flip = self.arms
        tested = self._sets(self.quadruple.tested, flip, seed)
        learned = self._sets(self.quadruple.learned, flip, seed)
        yield from self._by_network(SAMPLES, seed, learned, tested)
        other = self._other(seed)
        if other is not None:
            begun = self._sets(self.quadruple.learned, flip, other)
            yield from self._by_network(OTHER_START, seed, begun, tested)
        dealt = self._dealt(self.quadruple.tested, seed)
        yield from self._of_images(seed, dealt)
        ruler = self._ruler(seed, dealt)
        for arm, name in ((fedavg, "fedavg"), (flip, "flip")):
            yield from self._by_updates(arm, name, seed)
            yield from self._pushed(arm, name, seed, ruler)

    def _by_network(
        self, test: str, seed: int, learned: Pair, tested: Pair
    ) -> Iterator[QuadrupleAnswer]:
        right = told_by_network(
            self._build_model(),
            learned,
            tested,
            self.schedule,
            self._seed(seed, test),
            self._device(),
        )
        yield from self._answers(test, seed, right)

    def _of_images(self, seed: int, dealt: tuple[Deal, Deal]) -> Iterator[QuadrupleAnswer]:
        """Of raw images, and of those that can tell: an image of A2 stands in both."""
        learned = [_held(one).inputs for one in self._dealt(self.quadruple.learned, seed)]
        first, second = map(_held, dealt)
        right = told_by_network(
            self._build_model(),
            (learned[0], learned[1]),
            (first.inputs, second.inputs),
            self.schedule,
            self._seed(seed, IMAGES),
            self._device(),
        )
        yield from self._answers(IMAGES, seed, right)
        can_tell = right[0][first.labels == 0], right[1][second.labels == 0]
        yield from self._answers(IMAGES_OF_B, seed, can_tell)

    def _by_updates(self, arm: str, name: str, seed: int) -> Iterator[QuadrupleAnswer]:
        one, other = (
            [self._heard(task, arm, seed).updates() for task in tasks]
            for tasks in (self.quadruple.learned, self.quadruple.tested)
        )
        right = told_by_plane(
            (one[0], one[1]), (other[0], other[1]), self._seed(seed, UPDATES.format(name))
        )
        yield from self._answers(UPDATES.format(name), seed, right)

    def _pushed(
        self, arm: str, name: str, seed: int, ruler: AffinityYardstick
    ) -> Iterator[QuadrupleAnswer]:
        tested = [self._heard(task, arm, seed) for task in self.quadruple.tested]
        leads = [
            torch.stack([ruler.leads(one.models(who)) for who in one.clients()])
            for one in tested
        ]  # (clients, rounds), twice
        quarter = max(1, leads[0].shape[1] // QUARTER)
        parts = {PUSHED.format(name): slice(None)}
        if name == "flip":
            parts |= {EARLY: slice(quarter), LATE: slice(-quarter, None)}
        for test, part in parts.items():
            first, second = (
                torch.tensor([ruler.names_first(one[part]) for one in told]) for told in leads
            )
            yield from self._answers(test, seed, (first, ~second))

    def _ruler(self, seed: int, dealt: tuple[Deal, Deal]) -> AffinityYardstick:
        return yardstick(
            self._build_model(),
            (dealt[0].auxiliary, dealt[1].auxiliary),
            self.schedule,
            self._seed(seed, "yardstick"),
            self._device(),
        )

    def _answers(
        self,
        test: str,
        seed: int,
        right: tuple[Bool[Tensor, " first"], Bool[Tensor, " second"]],
    ) -> Iterator[QuadrupleAnswer]:
        for task, hits in zip(self.quadruple.tested, right, strict=True):
            yield QuadrupleAnswer(test, task.key, seed, int(hits.sum()), len(hits))

    def _sets(self, tasks: tuple[BinaryTask, BinaryTask], arm: str, seed: int) -> Pair:
        first, second = tasks
        return self._heard(first, arm, seed).sets(), self._heard(second, arm, seed).sets()

    def _heard(self, task: BinaryTask, arm: str, seed: int) -> TaskHeard:
        return heard(self.runs, task.key, arm, seed)

    def _dealt(self, tasks: tuple[BinaryTask, BinaryTask], seed: int) -> tuple[Deal, Deal]:
        plans = [self.runs.plans[task.key] for task in tasks]
        first, second = (
            deal_examples(plan, load_data(plan, self.runs.resources), seed) for plan in plans
        )
        return first, second

    def _other(self, seed: int) -> int | None:
        """The seed after this one; of the last, the first."""
        seeds = self._plan().seeds
        return None if len(seeds) < 2 else seeds[(seeds.index(seed) + 1) % len(seeds)]

    def _build_model(self) -> BuildModel:
        plan = self._plan()
        task = load_data(plan, self.runs.resources).task
        return partial(plan.training.model.build, task)

    def _plan(self) -> Plan:
        return self.runs.plans[self.quadruple.tested[0].key]

    def _device(self) -> str:
        return str(choose_device(self.runs.resources.device))

    def _seed(self, seed: int, name: str) -> Seed:
        return Seed(seed).child("attributes", repr(self.quadruple), name)


def _held(dealt: Deal) -> Examples:
    """The images of all clients."""
    return dealt.pool.take(torch.cat(dealt.rows[0]))
