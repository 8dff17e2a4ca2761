"""Table II: whether distilled data reveal the other class of a binary task."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import final

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure as Canvas

from overheard.data.datasets.cifar10 import Cifar10
from overheard.drawing.chart_frame import GUESS_DASHES
from overheard.drawing.figures import Panel as Drawing
from overheard.drawing.figures import ReportFigure
from overheard.drawing.svg import ACCENT, INK, SERIES, SOFT, inline_svg
from overheard.learning.fitting.share_network import FitSchedule
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.tiny_resnet import TinyResnet
from overheard.learning.threads import single_thread
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.statistics.estimate import Estimate
from overheard.statistics.exact_intervals import estimate_proportion
from overheard.statistics.run_means import estimate_mean
from overheard_studies.cached import load_or_measure
from overheard_studies.estimates import final_accuracy
from overheard_studies.flip.attribute_tests import (
    AFFINITY,
    IMAGES,
    IMAGES_OF_B,
    OTHER_START,
    OUTCOMES,
    PER_CLIENT_TESTS,
    SAMPLES,
    TESTS,
    UPDATES,
    AttributeTests,
    BinaryTask,
    Quadruple,
    QuadrupleOutcome,
)
from overheard_studies.flip.setting import (
    CIFAR10,
    FIVE_SEEDS,
    NEAR_A_GUESS,
    PUBLISHED,
    FlipScenario,
    distilled_arm,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.study import Conclusion, Panel, Study, Values
from overheard_studies.values import ReproducedValue, make_value, tabulate_values

DATASET = "cifar10"

FEDAVG = "FedAvg"

SCHEDULE = FitSchedule(epochs=10, batch=64)
"""Schedule of the networks that the attacker trains."""

AUXILIARY = 400
"""Auxiliary images of each task, half of each class."""

FULL = replace(
    CIFAR10,
    source=Cifar10(shrink=2),
    model=TinyResnet(),
    examples=300,
    rounds=20,
    flip=replace(CIFAR10.flip, at_once=2),
    flip_rounds=100,
    samples=(20,),
    seeds=FIVE_SEEDS,
)

REDUCED = replace(
    FULL,
    model=ConvNet(blocks=2, width=16),
    rounds=10,
    epochs=2,
    flip=CIFAR10.flip,
    flip_rounds=50,
)

PUBLISHED_TESTS = (SAMPLES, OTHER_START)
"""The tests with a published value. The paper does not say whether its four federations started
alike, so its value is shown for both."""


@final
@dataclass(frozen=True, slots=True)
class AttributeRow:
    """One row of Table II.

    Args:
        number: number of the row, from 1.
        data: "cifar10" or "cifar100".
        quadruple: classes of the attack.
        accuracies: accuracies of the models by task, 0..1.
        attack_accuracy: accuracy of the attack, 0..1; an uninformed guess has 0.5.

    """

    number: int
    data: str
    quadruple: Quadruple
    accuracies: Mapping[BinaryTask, float]
    attack_accuracy: float

    @property
    def keys(self) -> tuple[str, ...]:
        """The sub-folders of the audits of its tasks."""
        return tuple(task.key for task in self.quadruple.tasks)

    @property
    def heading(self) -> str:
        """The row in words."""
        primary, other = self.quadruple.primary, self.quadruple.other
        return f"row {self.number}: {' and '.join(primary)} against {' or '.join(other)}"

    def is_run(self, runs: StudyRuns) -> bool:
        """Return whether all its tasks were run, with a seed that all of them have."""
        if self.data != DATASET or not all(key in runs.audits for key in self.keys):
            return False
        return len(runs.common_seeds(self.keys)) > 0


def read_attribute_rows() -> tuple[AttributeRow, ...]:
    """Return the rows of Table II."""
    rows = []
    for one in PUBLISHED.find("attributes"):
        quadruple = Quadruple(tuple(one["primary"]), tuple(one["other"]))
        published = zip(quadruple.tasks, one["tasks"], strict=True)
        accuracies = {task: value / 100 for task, value in published}
        attack = one["attack"] / 100
        rows.append(AttributeRow(one["row"], one["data"], quadruple, accuracies, attack))
    return tuple(rows)


def attribute(
    sizes: tuple[FlipScenario, FlipScenario] = (FULL, REDUCED),
    rows: tuple[tuple[int, ...], tuple[int, ...]] = ((1, 3, 6), (1, 3, 6)),
    auxiliary: int = AUXILIARY,
    schedule: FitSchedule = SCHEDULE,
) -> Study:
    """Return the paper's transfer test of distilled samples, controls, and a stronger attack.

    Args:
        sizes: scenario of each binary task in a full and in a quick run.
        rows: rows of the paper's table in both; these three share six tasks.
        auxiliary: auxiliary images of each task, half of each class.
        schedule: schedule of the networks that the attacker trains.

    """
    tasks = [
        {
            task.key: task
            for row in read_attribute_rows()
            if row.data == DATASET and row.number in wanted
            for task in row.quadruple.tasks
        }
        for wanted in rows
    ]

    def plan(key: str, quick: bool) -> Plan | None:
        if key not in tasks[quick]:
            return None
        task, scenario = tasks[quick][key], sizes[quick]
        assert isinstance(scenario.source, Cifar10)
        threat = ThreatPlan(attacks=(MeanSoftmax(),), by_round=False)
        source = replace(scenario.source, only=task.classes)
        built = replace(scenario, source=source).build_plan((threat,), auxiliary=auxiliary)
        return built.model_copy(update={"title": f"FLiP, {task.key}"})

    def pooled(runs: StudyRuns) -> Iterator[ReproducedValue]:
        """Read the tests of each row and of all rows, and the accuracy of each task."""
        run_rows, outcomes = _run_rows(runs), list[QuadrupleOutcome]()
        for row in run_rows:
            key = row.keys[0]
            run = runs.with_common_seeds(row.keys).plans[key]
            described = describe_setting("CIFAR-10", run, plan(key, False) or run)
            rounds = run.rounds_of(distilled_arm(run))
            context = f"Table II, {row.heading}, {described}, {rounds} rounds of FLiP"
            of_row = find_outcomes(row, runs, schedule)
            yield from make_row_values(row, context, of_row)
            outcomes += of_row
        if run_rows:
            yield from make_pooled_values(run_rows, outcomes)
        yield from _accuracies(run_rows, runs)
        for row in read_attribute_rows():
            if row.data != DATASET:
                words = f"not run: Overheard has no {row.data}"
                context = f"Table II, row {row.number}, {row.data}; {words}"
                name = f"row{row.number}_{SAMPLES}"
                yield make_value(name, context, None, row.attack_accuracy, "higher")

    return Study(
        "table2",
        "The other class of a binary task, inferred from distilled samples",
        PUBLISHED.differences("common", "table2", epochs=schedule.epochs),
        tuple(
            Panel(key, "CIFAR-10", partial(plan, key), lambda one: ())
            for key in {**tasks[0], **tasks[1]}
        ),
        pooled=pooled,
        figures=_draw,
        conclusions=CONCLUSIONS,
        paper_size="12 rows, 32 x 32 pixels, 2,000 images a client, 100 rounds of 60 steps",
        hours=2.5,
    )


def _run_rows(runs: StudyRuns) -> list[AttributeRow]:
    return [row for row in read_attribute_rows() if row.is_run(runs)]


def find_outcomes(
    row: AttributeRow, runs: StudyRuns, schedule: FitSchedule
) -> tuple[QuadrupleOutcome, ...]:
    """Return the outcomes of a row's tests, from the cache if they are there."""
    shared = runs.with_common_seeds(row.keys)
    arms = FEDAVG, distilled_arm(shared.plans[row.keys[0]]).name
    tests = AttributeTests(shared, row.quadruple, arms, schedule)
    origin = shared.describe_origin(row.keys, AttributeTests.__module__)
    settings = f"{row.quadruple} {arms} {schedule} {origin}"
    outcomes = list[QuadrupleOutcome]()
    for seed in runs.common_seeds(row.keys):
        path = runs.folder / "answers" / f"row{row.number}-seed{seed}.json"
        measure = partial(_run_tests, tests, seed)
        of_seed = load_or_measure(path, settings, OUTCOMES, measure)
        outcomes += of_seed
    return tuple(outcomes)


def _run_tests(tests: AttributeTests, seed: int) -> tuple[QuadrupleOutcome, ...]:
    with single_thread():
        return tuple(tests.run_tests(seed))


def _accuracies(rows: Sequence[AttributeRow], runs: StudyRuns) -> Iterator[ReproducedValue]:
    for task, published in {
        task: accuracy for row in rows for task, accuracy in row.accuracies.items()
    }.items():
        flip = distilled_arm(runs.plans[task.key]).name
        for name, arm in (("fedavg", FEDAVG), ("flip", flip)):
            yield make_value(
                f"task_{task.key.replace('-', '_')}_{name}",
                f"binary tasks, accuracy of the last model; {task.key}, {arm}",
                final_accuracy(runs.audits[task.key], arm),
                published if name == "flip" else None,
                "higher",
            )


def make_row_values(
    row: AttributeRow, context: str, answers: Sequence[QuadrupleOutcome]
) -> Iterator[ReproducedValue]:
    """Yield every test of one row of Table II, and the paper's with samples as trials.

    Args:
        row: row of the paper's table.
        context: description of what it was measured on.
        answers: answers of all seeds.

    """
    prefix = f"row{row.number}"
    yield from _test_values(prefix, context, answers, row.attack_accuracy)
    samples = [one for one in answers if one.test == SAMPLES]
    hits, trials = (
        sum(one.hits for one in samples),
        sum(one.trials for one in samples),
    )
    setting = f"{context}; {TESTS[SAMPLES]}, interval with each sample as a trial"
    rate = estimate_proportion(float(hits), trials)
    yield make_value(f"{prefix}_{SAMPLES}_each_a_trial", setting, rate, None, "higher")


def make_pooled_values(
    rows: Sequence[AttributeRow], answers: Sequence[QuadrupleOutcome]
) -> Iterator[ReproducedValue]:
    """Yield every test over all rows, with the mean of the published values."""
    context = f"Table II, rows {', '.join(str(row.number) for row in rows)}"
    published = fmean(row.attack_accuracy for row in rows)
    return _test_values("all", context, answers, published)


def _test_values(
    prefix: str, context: str, answers: Sequence[QuadrupleOutcome], published: float
) -> Iterator[ReproducedValue]:
    for test, words in TESTS.items():
        rate = estimate_success_rate(test, answers)
        missing = ": not measured, it needs at least two seeds" if rate is None else ""
        beside = published if test in PUBLISHED_TESTS else None
        setting = f"{context}; {words}{missing}"
        yield make_value(f"{prefix}_{test}", setting, rate, beside, "higher")


def estimate_success_rate(test: str, answers: Iterable[QuadrupleOutcome]) -> Estimate | None:
    """Estimate a test's success rate, 0..1; None if it was not run.

    All federations have equal weight, and all decisions about a federation form one unit. If a
    test decides often about each federation, the interval is that of `estimate_mean`. If it
    decides once per client, or is always right or always wrong about each federation, it is
    that of Clopper and Pearson. A federation is then one trial, as its five clients start every
    round with the same model.
    """
    shares = defaultdict[tuple[int, str], list[float]](list)
    for one in answers:
        if one.test == test:
            shares[one.seed, one.task].append(one.hits / one.trials)
    if not shares:
        return None
    values = np.array([fmean(several) for several in shares.values()])
    if test in PER_CLIENT_TESTS or set(values) <= {0.0, 1.0}:
        return estimate_proportion(float(values.sum()), len(values))
    return estimate_mean(values, np.array([seed for seed, _ in shares]))


def _over_all_rows(test: str, runs: StudyRuns, values: Values) -> Mapping[str, Estimate | None]:
    (one,) = [each for each in values if each.name == f"all_{test}"]
    return {test: None if one.value is None else Estimate(one.value, one.low, one.high)}


CONCLUSIONS = (
    Conclusion(
        "half",
        "If our FLiP works as expected, the testing accuracy should be about 50%",
        partial(_over_all_rows, SAMPLES),
        "around",
        0.5,
        words="the paper's attack, federations with the same start",
    ),
    Conclusion(
        "absent",
        "both test data and training data hardly contain the features of the B1 and B2 "
        "categories",
        partial(_over_all_rows, AFFINITY.format("flip")),
        "around",
        0.5,
        words="Overheard's attack on the models that the samples train",
    ),
    Conclusion(
        "near_same_start",
        "If the federations start equally, the paper's attack is near a guess: it has at most "
        "54.69 % on CIFAR-10",
        partial(_over_all_rows, SAMPLES),
        "below",
        NEAR_A_GUESS,
        words="the paper's attack, below 55 %",
    ),
    Conclusion(
        "near_other_start",
        "If they start differently, the paper's attack is near a guess",
        partial(_over_all_rows, OTHER_START),
        "below",
        NEAR_A_GUESS,
        words="the paper's attack, below 55 %",
    ),
    Conclusion(
        "cifar100",
        "the protection effect on CIFAR-100 is worse than that on CIFAR-10",
        None,
        reason_not_run="CIFAR-100 is not here",
    ),
)


def _draw(runs: StudyRuns, values: Values) -> Iterator[ReportFigure]:
    """Draw the tests of each row, and of all rows."""
    prefixes = {row.heading: f"row{row.number}" for row in _run_rows(runs)}
    if prefixes:
        prefixes["all rows"] = "all"
    panels = {
        heading: [one for one in values if one.name.startswith(f"{prefix}_")]
        for heading, prefix in prefixes.items()
    }
    yield attribute_figure("Table II: the other class of a binary task", panels)


TEST_LABELS: Mapping[str, str] = {
    SAMPLES: "samples",
    OTHER_START: "samples, other start",
    UPDATES.format("flip"): "trained models",
    AFFINITY.format("flip"): "affinity, trained models",
    IMAGES: "raw images",
    IMAGES_OF_B: "raw images of B",
    UPDATES.format("fedavg"): "FedAvg updates",
    AFFINITY.format("fedavg"): "affinity, FedAvg",
}
"""Labels of the drawn tests, from the top: FLiP first, then controls."""

CONTROLS = (IMAGES, IMAGES_OF_B, UPDATES.format("fedavg"), AFFINITY.format("fedavg"))
"""The tests that are drawn in another colour."""

LINE_HEIGHT = 24.0
"""Distance between two lines in pixels."""


def attribute_figure(
    title: str, panels: Mapping[str, Sequence[ReproducedValue]]
) -> ReportFigure:
    """Draw a chart for each row of the table, and one for all rows.

    Args:
        title: title of the figure.
        panels: values of each chart, by its heading; tests that are not drawn are left out.

    """
    return ReportFigure(
        title,
        "Share of correct decisions between B1 and B2, in %. Dots: reproduced, with 95 % "
        "intervals. Plus signs: published. Dashed line: a guess. Raw images reach about 75 % "
        "at best, as those of A carry no information. Controls have another colour.",
        None,
        tuple(
            Drawing(heading, _chart(chart_values, f"{title}: {heading}"))
            for heading, chart_values in panels.items()
        ),
        tabulate_values(
            title, [one for chart_values in panels.values() for one in chart_values]
        ),
        True,
    )


def _chart(values: Sequence[ReproducedValue], label: str) -> Markup:
    by_test = {one.name.partition("_")[2]: one for one in values}
    width, height, left, bottom = 330.0, 40.0 + LINE_HEIGHT * len(TEST_LABELS), 132.0, 30.0

    def draw(canvas: Canvas) -> None:
        axes = canvas.add_axes(
            (left / width, bottom / height, (width - left - 12) / width, 1 - bottom / height)
        )
        axes.axvline(50, color=INK, ls=GUESS_DASHES, lw=1.3)
        for index, test in enumerate(TEST_LABELS):
            one = by_test[test]
            colour = SERIES[1] if test in CONTROLS else ACCENT
            if one.value is not None:
                if one.low is not None and one.high is not None:
                    ends = [100 * one.low, 100 * one.high]
                    axes.plot(ends, [index] * 2, color=colour, lw=3)
                axes.plot([100 * one.value], [index], "o", color=colour, ms=7)
            if one.published is not None:
                axes.plot([100 * one.published], [index], "+", color=SOFT, ms=10, mew=1.8)
        axes.set_yticks(range(len(TEST_LABELS)), list(TEST_LABELS.values()))
        axes.set_ylim(len(TEST_LABELS) - 0.4, -0.6)
        axes.set_xlim(0, 102)
        axes.tick_params(axis="y", length=0, labelsize=11)
        axes.tick_params(axis="x", labelsize=11)
        axes.grid(axis="x")

    return inline_svg(draw, width, height, label)
