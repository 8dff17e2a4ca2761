"""Figure 4: distilled samples, and their similarity to their class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from overheard.auditing.inputs import load_data, partition_for_plan
from overheard.core.examples import Examples
from overheard.core.messages import DistilledSet
from overheard.core.parties import SERVER
from overheard.data.datasets.cifar10 import Cifar10
from overheard.drawing.figures import Panel, ReportFigure
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.statistics.run_means import estimate_mean
from overheard_studies.estimates import reproduced_value
from overheard_studies.experiment import Experiment
from overheard_studies.flip.accuracy import COMMON_DIFFERENCES
from overheard_studies.flip.class_similarity import (
    is_nearest_to_own_class,
    measure_class_similarity,
    own_class_margin,
)
from overheard_studies.flip.pictures import Picture, draw_picture_row
from overheard_studies.flip.scenarios import (
    CIFAR10,
    MNIST,
    QUICK_MNIST,
    TEN_PER_STEP_FLIP,
    FlipScenario,
)
from overheard_studies.page_content import IllustratedExperiment, PageContent
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.values_table import tabulate_values

SHOWN_SAMPLES = 2
"""Number of samples of each class that are drawn, as in the paper."""

SHOWN_LABELS = 3
"""Number of highest soft labels below a sample, as in the paper."""

FULL = tuple(replace(one, rounds=1, samples=(20,), extra_arms=()) for one in (MNIST, CIFAR10))
"""FedAvg is not evaluated, so its arm runs one round."""

REDUCED = (
    replace(
        QUICK_MNIST,
        examples=1_800,
        rounds=1,
        flip=TEN_PER_STEP_FLIP,
        flip_rounds=150,
        seeds=(0, 1),
        extra_arms=(),
    ),
    replace(
        CIFAR10,
        source=Cifar10(shrink=2),
        flip=replace(CIFAR10.flip, at_once=10),
        rounds=1,
        flip_rounds=150,
        seeds=(0, 1),
        extra_arms=(),
    ),
)

LabelledInputs = tuple[Float[Tensor, "examples ..."], Tensor]
"""Inputs and the class of each."""


@final
@dataclass(frozen=True, slots=True)
class SamplesExperiment(Experiment, IllustratedExperiment):
    """Original images and the last set that the server shared.

    Args:
        scenarios: scenarios of a full run.
        reduced: scenarios of a quick run.
        name: name of the figure.

    """

    scenarios: tuple[FlipScenario, ...] = FULL
    reduced: tuple[FlipScenario, ...] = REDUCED
    name: str = "figure4"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Original images, and the samples that clients share instead"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{COMMON_DIFFERENCES} The paper says that samples are visually obfuscated, and "
            "shows some. "
            "Those shown here are the first of each class in the first run, without "
            "selection. Overheard adds a score: how often a sample of the last set is more "
            "similar to the mean image of its own class than to those of all other classes. "
            "The similarity is the cosine after the overall mean is subtracted from both, "
            "over the clients' images. A sample's class is its highest soft label. Images of "
            "the test set and the initial noise of the samples are scored in the same way. "
            "The samples of a set were optimized together, so intervals that resample them "
            "one by one within runs are too narrow. A sample that looks like nothing may "
            "still leak; flip/table2 and flip/membership measure this. In a quick run images "
            "have half the pixels per side, clients have 1,800 images, and sets have ten "
            "samples per class, ten of which are learned from at a time."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set."""
        threat = ThreatPlan(attacks=(MeanSoftmax(),), by_round=False)
        scenarios = self.reduced if quick else self.scenarios
        return {one.name: one.build_plan((threat,), auxiliary=100) for one in scenarios}

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the similarity of each data set's samples to their classes."""
        full, figures = self.plans(quick=False), list[ReproducedValue]()
        for name in runs.audits:
            run = runs.plans[name]
            context = describe_setting(name, run, full.get(name, run))
            figures += _likeness_figures(
                name,
                f"{context}, {run.rounds_of(_distilled(run))} rounds of FLiP",
                {seed: _Run.of(runs, name, seed) for seed in run.seeds},
            )
        return tuple(figures)

    def page_content(
        self, runs: ExperimentRuns, figures: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw an original and two samples of each class from the first run."""
        page_figures = []
        for name in runs.audits:
            run = runs.plans[name]
            title = f"Figure 4: {name}"
            names = runs.audits[name].class_names
            scenario_values = [one for one in figures if one.name.startswith(f"{name}_")]
            page_figures.append(
                ReportFigure(
                    title,
                    "Left: an image of a client. Right: samples that the server shared last, "
                    "with their highest soft labels. All have the same brightness scale.",
                    None,
                    _Run.of(runs, name, run.seeds[0]).panels(names, title),
                    tabulate_values(title, scenario_values),
                    False,
                )
            )
        return PageContent(tuple(page_figures))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """The data and the distilled sets of one federation.

    Args:
        held: images of all clients.
        test: images of the test set.
        first: initial set of the server.
        last: last set of the server.

    """

    held: Examples
    test: Examples
    first: DistilledSet
    last: DistilledSet

    @staticmethod
    def of(runs: ExperimentRuns, name: str, seed: int) -> "_Run":
        """Read the run with a seed from an audit."""
        plan = runs.plans[name]
        partition = partition_for_plan(plan, load_data(plan, runs.resources), seed)
        transcript = runs.transcript(name, _distilled(plan).name, seed)
        sets = transcript.seen_by(SERVER).distilled_sets(SERVER)
        held = partition.pool.take(torch.cat(partition.rows[0]))
        return _Run(held, partition.test, sets[min(sets)], sets[max(sets)])

    def groups(self) -> Mapping[str, LabelledInputs]:
        """Return the groups of inputs that are compared with the class means."""
        return {
            "samples": (self.last.inputs, self.last.labels.argmax(1)),
            "images": (self.test.inputs, self.test.labels),
            "noise": (self.first.inputs, self.first.labels.argmax(1)),
        }

    def panels(self, names: Sequence[str], title: str) -> tuple[Panel, ...]:
        """Draw a row of pictures for each class."""
        panels = []
        for label, name in enumerate(names):
            image = self.held.inputs[self.held.labels == label][0]
            rows = (self.last.labels.argmax(1) == label).nonzero().flatten()[:SHOWN_SAMPLES]
            pictures = [
                Picture(image, ("original",)),
                *(
                    Picture(self.last.inputs[row], _scores(self.last.labels[row], names))
                    for row in rows.tolist()
                ),
            ]
            panels.append(Panel(name, draw_picture_row(pictures, f"{title}, {name}")))
        return tuple(panels)


GROUP_NAMES = {
    "samples": "the last set's samples",
    "images": "control: images of the test set",
    "noise": "control: the initial noise of the samples",
}


def _likeness_figures(
    name: str, context: str, runs: Mapping[int, _Run]
) -> list[ReproducedValue]:
    classes = next(iter(runs.values())).last.labels.shape[1]
    figures = []
    for group, words in GROUP_NAMES.items():
        hits, margins, seeds = list[float](), list[float](), list[int]()
        for seed, run in runs.items():
            inputs, labels = run.groups()[group]
            similarities = measure_class_similarity(inputs, run.held, classes)
            hits += is_nearest_to_own_class(similarities, labels).double().tolist()
            margins += own_class_margin(similarities, labels).tolist()
            seeds += [seed] * len(labels)
        run_seeds = np.array(seeds)
        figures += [
            reproduced_value(
                f"{name}_{group}_{key}",
                f"{context}; {words}: {meaning}",
                estimate_mean(np.array(values), run_seeds),
                None,
                "higher",
            )
            for key, meaning, values in (
                (
                    "own_class",
                    f"most similar to their own class; a guess has {1 / classes:.3f}",
                    hits,
                ),
                (
                    "lead",
                    "cosine with the own class's mean minus that with others; a guess has 0",
                    margins,
                ),
            )
        ]
    return figures


def _distilled(plan: Plan) -> ArmPlan:
    """Return the arm with distilled samples."""
    return next(arm for arm in plan.arms if arm.distillation is not None)


def _scores(soft: Float[Tensor, " classes"], names: Sequence[str]) -> tuple[str, ...]:
    """Return the highest soft labels, one per line."""
    values, indices = soft.topk(min(SHOWN_LABELS, len(names)))
    return tuple(
        f"{names[index]} {value:.2f}"
        for index, value in zip(indices.tolist(), values.tolist(), strict=True)
    )
