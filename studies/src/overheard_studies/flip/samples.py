"""Figure 4: distilled samples, and their similarity to their class."""

from collections.abc import Iterator, Mapping, Sequence
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
from overheard.plans.plan import ThreatPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.flip.pictures import (
    Picture,
    class_margin,
    draw_picture_row,
    is_nearest_to_its_class,
    measure_class_similarity,
)
from overheard_studies.flip.setting import (
    CIFAR10,
    FIVE_SEEDS,
    MNIST,
    PUBLISHED,
    QUICK_MNIST,
    TEN_PER_STEP_FLIP,
    FlipScenario,
    build_panels,
    distilled_arm,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.study import Conclusion, PanelRun, Study, Values
from overheard_studies.values import ReproducedValue, tabulate_values

SHOWN_SAMPLES = 2
"""Number of samples of each class that are drawn, as in the paper."""

SHOWN_LABELS = 3
"""Number of highest soft labels below a sample, as in the paper."""

FULL = tuple(
    replace(one, rounds=1, samples=(20,), seeds=FIVE_SEEDS) for one in (MNIST, CIFAR10)
)
"""FedAvg is not evaluated, so its arm runs one round."""

REDUCED = (
    replace(
        QUICK_MNIST,
        examples=1_800,
        rounds=1,
        flip=TEN_PER_STEP_FLIP,
        flip_rounds=150,
        seeds=FIVE_SEEDS,
    ),
    replace(
        CIFAR10,
        source=Cifar10(shrink=2),
        flip=replace(CIFAR10.flip, at_once=10),
        rounds=1,
        flip_rounds=150,
        seeds=FIVE_SEEDS,
    ),
)

LabelledInputs = tuple[Float[Tensor, "examples ..."], Tensor]
"""Inputs and the class of each."""


def samples(
    scenarios: tuple[FlipScenario, ...] = FULL, reduced: tuple[FlipScenario, ...] = REDUCED
) -> Study:
    """Return Figure 4: original images, the last set that the server shared, and scores."""
    threat = ThreatPlan(attacks=(MeanSoftmax(),), by_round=False)
    return Study(
        "figure4",
        "Original images, and the samples that clients share instead",
        PUBLISHED.differences("common", "figure4"),
        build_panels(
            scenarios, reduced, lambda one: one.build_plan((threat,), auxiliary=100), _read
        ),
        lambda name, run, full: (
            f"{describe_setting(name, run, full)}, {run.rounds_of(distilled_arm(run))} rounds "
            "of FLiP"
        ),
        figures=_draw,
        conclusions=CONCLUSIONS,
        paper_size="100 rounds of 300 to 360 steps, 10,000 to 12,000 images a client",
        hours=3.3,
    )


def _own_class(runs: StudyRuns, values: Values) -> Mapping[str, Estimate | None]:
    return {
        one.name: None if one.value is None else Estimate(one.value, one.low, one.high)
        for one in values
        if one.name.endswith("_samples_own_class")
    }


CONCLUSIONS = (
    Conclusion(
        "obfuscated",
        "Distilled samples of different datasets in different categories all seem randomly "
        "generated",
        _own_class,
        "below",
        0.15,
        words="samples that are most similar to the mean image of their class, below 15 %; a "
        "guess has 10 %",
    ),
)


def _draw(runs: StudyRuns, values: Values) -> Iterator[ReportFigure]:
    """Draw an original and two samples of each class from the first run."""
    for name, audit in runs.audits.items():
        run, title = _Run.of(runs, name, runs.plans[name].seeds[0]), f"Figure 4: {name}"
        shown = [one for one in values if one.name.startswith(f"{name}_")]
        yield ReportFigure(
            title,
            "Left: an image of a client. Right: samples that the server shared last, with "
            "their highest soft labels. All have the same brightness scale.",
            None,
            run.panels(audit.class_names, title),
            tabulate_values(title, shown),
            False,
        )


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
    def of(runs: StudyRuns, name: str, seed: int) -> "_Run":
        """Read the run with a seed from an audit."""
        plan = runs.plans[name]
        partition = partition_for_plan(plan, load_data(plan, runs.resources), seed)
        transcript = runs.transcript(name, distilled_arm(plan).name, seed)
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


def _read(one: PanelRun) -> Iterator[ReproducedValue]:
    """Read the similarity of each group of images to their classes."""
    runs = {seed: _Run.of(one.runs, one.key, seed) for seed in one.plan.seeds}
    classes = next(iter(runs.values())).last.labels.shape[1]
    for group, words in GROUP_NAMES.items():
        hits, margins, seeds = list[float](), list[float](), list[int]()
        for seed, run in runs.items():
            inputs, labels = run.groups()[group]
            similarities = measure_class_similarity(inputs, run.held, classes)
            hits += is_nearest_to_its_class(similarities, labels).double().tolist()
            margins += class_margin(similarities, labels).tolist()
            seeds += [seed] * len(labels)
        own = f"most similar to their own class; a guess has {1 / classes:.3f}"
        lead = "cosine with the own class's mean minus that with others; a guess has 0"
        for key, meaning, values in (("own_class", own, hits), ("lead", lead, margins)):
            mean, name = estimate_mean(np.array(values), np.array(seeds)), f"{group}_{key}"
            yield one.value(f"{one.key}_{name}", f"{words}: {meaning}", mean, None, "higher")


def _scores(soft: Float[Tensor, " classes"], names: Sequence[str]) -> tuple[str, ...]:
    """Return the highest soft labels, one per line."""
    values, indices = soft.topk(min(SHOWN_LABELS, len(names)))
    return tuple(
        f"{names[index]} {value:.2f}"
        for index, value in zip(indices.tolist(), values.tolist(), strict=True)
    )
