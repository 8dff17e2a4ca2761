"""Figure 4: what distilled samples look like, and how much they look like their class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from overheard.auditing.supplies import deal_examples, load_data
from overheard.core.examples import Examples
from overheard.core.messages import DistilledSet
from overheard.core.parties import SERVER
from overheard.data.datasets.cifar10 import Cifar10
from overheard.drawing.plates import Panel, Plate
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.flip.accuracy import COMMON
from overheard.papers.flip.likeness import lead, likeness, looks_like_its_class
from overheard.papers.flip.pictures import Picture, row_of_pictures
from overheard.papers.flip.world import CIFAR10, MNIST, SMALL, TEN_A_STEP, FlipScenario
from overheard.papers.numbers_table import numbers_table
from overheard.papers.reading import BOOTSTRAP, figure
from overheard.papers.runs import Runs
from overheard.papers.setting import setting
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.statistics.estimate import estimate

SHOWN = 2
"""Samples of each class that are drawn, as in the paper."""

SCORES = 3
"""Highest soft labels that are written below a sample, as in the paper."""

FULL = tuple(replace(one, rounds=1, samples=(20,), beside=()) for one in (MNIST, CIFAR10))
"""FedAvg is not asked about: its arm runs a round."""

REDUCED = (
    replace(
        SMALL,
        examples=1_800,
        rounds=1,
        flip=TEN_A_STEP,
        flip_rounds=150,
        seeds=(0, 1),
        beside=(),
    ),
    replace(
        CIFAR10,
        source=Cifar10(shrink=2),
        flip=replace(CIFAR10.flip, at_once=10),
        rounds=1,
        flip_rounds=150,
        seeds=(0, 1),
        beside=(),
    ),
)

Labelled = tuple[Float[Tensor, "examples ..."], Tensor]
"""Inputs, and the class that each stands for."""


@final
@dataclass(frozen=True, slots=True)
class SamplesExperiment(Experiment, Drawn):
    """Original images beside the last set that the server shared.

    Args:
        worlds: that are run.
        reduced: those that are run in a hurry.
        name: of the figure.

    """

    worlds: tuple[FlipScenario, ...] = FULL
    reduced: tuple[FlipScenario, ...] = REDUCED
    name: str = "figure4"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return "Original images, and what clients share in their place"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{COMMON} The paper says that samples are visually obfuscated, and shows some; "
            "ours are the first of each class in the first run, none chosen. Beside them "
            "stands a number, which is ours: how often a sample of the last set is most like "
            "the mean image of its own class (by the cosine, after the mean of all classes is "
            "taken off both) among those of all classes, over the clients' images. A sample's "
            "class is its highest soft label. Images of the test part and the noise that "
            "samples begin as are told the same way. The samples of a set were made together, "
            "and intervals that draw them one by one, within runs, are too narrow. That a "
            "sample looks like nothing does not say that nothing can be read off it: "
            "flip/table2 and flip/membership do. In a hurry images have half the pixels a "
            "side, clients 1,800 images, and sets ten samples a class, of which ten at a time "
            "are learned from."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set."""
        threat = ThreatPlan(attacks=(MeanSoftmax(),), by_round=False)
        worlds = self.reduced if quick else self.worlds
        return {one.name: one.plan((threat,), auxiliary=100) for one in worlds}

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """How much the samples of each data set look like their classes."""
        full, figures = self.plans(quick=False), list[Figure]()
        for name in runs.audits:
            run = runs.plans[name]
            where = setting(name, run, full.get(name, run))
            figures += _likeness_figures(
                name,
                f"{where}, {run.rounds_of(_distilled(run))} rounds of FLiP",
                {seed: _Run.of(runs, name, seed) for seed in run.seeds},
            )
        return tuple(figures)

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """An original and two samples of each class, of the first run."""
        plates = []
        for name in runs.audits:
            run = runs.plans[name]
            title = f"Figure 4: {name}"
            names = runs.audits[name].class_names
            told = [one for one in figures if one.name.startswith(f"{name}_")]
            plates.append(
                Plate(
                    title,
                    "Left: an image of a client. Beside it: samples that the server shared "
                    "last, with their highest soft labels. All on one scale of brightness.",
                    None,
                    _Run.of(runs, name, run.seeds[0]).panels(names, title),
                    numbers_table(title, told),
                    False,
                )
            )
        return Drawing(tuple(plates))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One federation.

    Args:
        held: the images of all its clients.
        test: held out.
        first: the set that the server begins with.
        last: the one that it ends with.

    """

    held: Examples
    test: Examples
    first: DistilledSet
    last: DistilledSet

    @staticmethod
    def of(runs: Runs, name: str, seed: int) -> "_Run":
        """What an audit left of the run under a seed."""
        plan = runs.plans[name]
        dealt = deal_examples(plan, load_data(plan, runs.resources), seed)
        said = runs.transcript(name, _distilled(plan).name, seed)
        sets = said.seen_by(SERVER).distilled(SERVER)
        held = dealt.pool.take(torch.cat(dealt.rows[0]))
        return _Run(held, dealt.test, sets[min(sets)], sets[max(sets)])

    def groups(self) -> Mapping[str, Labelled]:
        """What is compared with the classes' means."""
        return {
            "samples": (self.last.inputs, self.last.labels.argmax(1)),
            "images": (self.test.inputs, self.test.labels),
            "noise": (self.first.inputs, self.first.labels.argmax(1)),
        }

    def panels(self, names: Sequence[str], title: str) -> tuple[Panel, ...]:
        """A row of pictures for each class."""
        panels = []
        for label, name in enumerate(names):
            image = self.held.inputs[self.held.labels == label][0]
            rows = (self.last.labels.argmax(1) == label).nonzero().flatten()[:SHOWN]
            pictures = [
                Picture(image, ("original",)),
                *(
                    Picture(self.last.inputs[row], _scores(self.last.labels[row], names))
                    for row in rows.tolist()
                ),
            ]
            panels.append(Panel(name, row_of_pictures(pictures, f"{title}, {name}")))
        return tuple(panels)


WORDS = {
    "samples": "the last set's samples",
    "images": "control: images of the test part",
    "noise": "control: the noise that samples begin as",
}


def _likeness_figures(name: str, where: str, of: Mapping[int, _Run]) -> list[Figure]:
    classes = next(iter(of.values())).last.labels.shape[1]
    figures = []
    for group, words in WORDS.items():
        hits, leads, seeds = list[float](), list[float](), list[int]()
        for seed, run in of.items():
            inputs, labels = run.groups()[group]
            told = likeness(inputs, run.held, classes)
            hits += looks_like_its_class(told, labels).double().tolist()
            leads += lead(told, labels).tolist()
            seeds += [seed] * len(labels)
        runs = np.array(seeds)
        figures += [
            figure(
                f"{name}_{group}_{key}",
                f"{where}; {words}: {meaning}",
                estimate(np.array(values), runs, BOOTSTRAP),
                None,
                "higher",
            )
            for key, meaning, values in (
                ("own_class", f"most like their own class, a guess {1 / classes:.3f}", hits),
                (
                    "lead",
                    "cosine with their own class's mean less that with others', a guess 0",
                    leads,
                ),
            )
        ]
    return figures


def _distilled(plan: Plan) -> ArmPlan:
    """The arm in which samples travel."""
    return next(arm for arm in plan.arms if arm.distillation is not None)


def _scores(soft: Float[Tensor, " classes"], names: Sequence[str]) -> tuple[str, ...]:
    """The highest soft labels, a line each."""
    values, places = soft.topk(min(SCORES, len(names)))
    return tuple(
        f"{names[place]} {value:.2f}"
        for place, value in zip(places.tolist(), values.tolist(), strict=True)
    )
