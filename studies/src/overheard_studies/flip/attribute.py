"""Table II: whether distilled data reveal the other class of a binary task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.auditing.plan_code import describe_origin
from overheard.data.datasets.cifar10 import Cifar10
from overheard.learning.fitting.share_network import FitSchedule
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.tiny_resnet import TinyResnet
from overheard.learning.threads import one_thread
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.report.experiment_page import Holds, PaperStatement
from overheard_studies.estimates import final_accuracy, reproduced_value
from overheard_studies.experiment import Experiment
from overheard_studies.flip.accuracy import COMMON_DIFFERENCES
from overheard_studies.flip.attribute_charts import attribute_figure
from overheard_studies.flip.attribute_tests import (
    AFFINITY,
    SAMPLES,
    AttributeTests,
    QuadrupleOutcome,
)
from overheard_studies.flip.attribute_values import (
    make_pooled_values,
    make_row_values,
    make_unavailable_value,
)
from overheard_studies.flip.cached_outcomes import load_outcomes, save_outcomes
from overheard_studies.flip.published_numbers import AttributeRow, read_attribute_rows
from overheard_studies.flip.quadruple import BinaryTask
from overheard_studies.flip.scenarios import CIFAR10, FlipScenario, flip_arm_name
from overheard_studies.page_content import IllustratedExperiment, PageContent
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.setting_description import describe_setting

DATASET = "cifar10"

FEDAVG = "FedAvg"

SCHEDULE = FitSchedule(epochs=10, batch=64)

FULL = replace(
    CIFAR10,
    model=TinyResnet(),
    examples=300,
    rounds=20,
    flip_rounds=100,
    samples=(20,),
    extra_arms=(),
)

REDUCED = replace(
    FULL,
    source=Cifar10(shrink=2),
    model=ConvNet(blocks=2, width=16),
    rounds=10,
    epochs=2,
    flip_rounds=50,
    seeds=(0, 1),
)


@final
@dataclass(frozen=True, slots=True)
class AttributeExperiment(Experiment, IllustratedExperiment):
    """The paper's transfer test of distilled samples, controls, and a stronger attack.

    Args:
        full: scenario of each binary task.
        reduced: the same for a quick run.
        rows: rows of the paper's table that are run.
        reduced_rows: rows of a quick run; these three share six tasks.
        auxiliary: auxiliary images of each task, half of each class.
        schedule: schedule of the networks that the attacker trains.
        name: name of the table.

    """

    full: FlipScenario = FULL
    reduced: FlipScenario = REDUCED
    rows: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    reduced_rows: tuple[int, ...] = (1, 3, 6)
    auxiliary: int = 400
    schedule: FitSchedule = SCHEDULE
    name: str = "table2"

    @property
    def title(self) -> str:
        """Title of the table."""
        return "The other class of a binary task, inferred from distilled samples"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{COMMON_DIFFERENCES} Only CIFAR-10 rows are run, on 300 images per client; "
            "CIFAR-100 is not "
            "available. Each federation has 5 clients and is run once per seed for all rows "
            "in which it occurs. The paper does not name the attacker's classifier. Here it "
            f"is the federation's own network, trained by Adam for {self.schedule.epochs} "
            "epochs on the server's samples of all rounds but the first set, which is noise "
            "(100 rounds at most). Soft labels and learning rates are not used. The paper "
            "does not say whether its federations started with the same weights and samples. "
            "Both are run, and the published value is shown for both. The published "
            "accuracies are multiples of 1/1600 within rounding, which suggests 1,600 samples "
            "per test. Samples of one run are not independent trials, so the intervals here "
            "are over federations or count each federation as one trial. One value per row "
            "shows how narrow the interval looks if each sample is a trial. With two or three "
            "seeds a row's own interval is rough; use the pooled one. The controls and the "
            "stronger attack are Overheard's. The attack uses auxiliary images of both "
            "classes and the models that anyone can train from the samples. It names the "
            "class whose images these models classify as 'not A' with more confidence, "
            "against a threshold from two models that the attacker trains. B is all that is "
            "'not A' in a task and hence relevant to it, so it is no flaw that a model knows "
            "it. An attack at 50 % then shows that the attack is weak, not that B is absent. "
            "In a quick run images have 16 x 16 pixels, and a network of two blocks of 16 "
            "channels replaces TinyResnet."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per binary task, for all rows in which it occurs."""
        wanted = self.reduced_rows if quick else self.rows
        scenario = self.reduced if quick else self.full
        return {
            task.key: self._plan(scenario, task)
            for row in read_attribute_rows()
            if row.data == DATASET and row.number in wanted
            for task in row.quadruple.tasks
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the tests of each row and of all rows, and the accuracy of each task."""
        rows = [row for row in read_attribute_rows() if _is_run(row, runs)]
        values, all_answers = list[ReproducedValue](), list[QuadrupleOutcome]()
        for row in rows:
            answers = self._answers(row, runs)
            values += make_row_values(row, self._describe_row(row, runs), answers)
            all_answers += answers
        if rows:
            numbers = ", ".join(str(row.number) for row in rows)
            values += make_pooled_values(rows, f"Table II, rows {numbers}", all_answers)
        values += self._accuracies(rows, runs)
        values += [
            make_unavailable_value(row) for row in read_attribute_rows() if row.data != DATASET
        ]
        return tuple(values)

    def page_content(
        self, runs: ExperimentRuns, values: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw the tests of each row, and check the paper's statements about them."""
        panels = {
            heading: [one for one in values if one.name.startswith(f"{prefix}_")]
            for heading, prefix in _headings(runs).items()
        }
        by_name = {one.name: one for one in values}
        return PageContent(
            (attribute_figure("Table II: the other class of a binary task", panels),),
            _check_statements(by_name) if f"all_{SAMPLES}" in by_name else (),
        )

    @property
    def _flip(self) -> str:
        """Return the name of the arm with distilled samples, the same in a quick run."""
        return flip_arm_name(self.full.samples[0])

    def _plan(self, scenario: FlipScenario, task: BinaryTask) -> Plan:
        assert isinstance(scenario.source, Cifar10)
        threat = ThreatPlan(attacks=(MeanSoftmax(),), by_round=False)
        source = replace(scenario.source, only=task.classes)
        plan = replace(scenario, source=source).build_plan((threat,), auxiliary=self.auxiliary)
        return plan.model_copy(update={"title": f"FLiP, {task.key}"})

    def _answers(self, row: AttributeRow, runs: ExperimentRuns) -> tuple[QuadrupleOutcome, ...]:
        """Return the outcomes of a row's tests, from the cache if they are there."""
        arms = FEDAVG, self._flip
        shared = runs.with_common_seeds(_keys(row))
        tests = AttributeTests(shared, row.quadruple, arms, self.schedule)
        outcomes = list[QuadrupleOutcome]()
        plans = [shared.plans[key] for key in _keys(row)]
        origin = describe_origin(plans, AttributeTests.__module__)
        settings = f"{row.quadruple} {arms} {self.schedule} {origin}"
        for seed in runs.common_seeds(_keys(row)):
            path = runs.folder / "answers" / f"row{row.number}-seed{seed}.json"
            cached = load_outcomes(path, settings)
            if cached is None:
                with one_thread():
                    cached = tuple(tests.run_tests(seed))
                save_outcomes(path, settings, cached)
            outcomes += cached
        return tuple(outcomes)

    def _describe_row(self, row: AttributeRow, runs: ExperimentRuns) -> str:
        """Describe what a row was measured on."""
        key = _keys(row)[0]
        run = runs.with_common_seeds(_keys(row)).plans[key]
        context = describe_setting("CIFAR-10", run, self.plans(quick=False).get(key, run))
        (rounds,) = (run.rounds_of(arm) for arm in run.arms if arm.name == self._flip)
        return f"Table II, {_heading(row)}, {context}, {rounds} rounds of FLiP"

    def _accuracies(
        self, rows: Sequence[AttributeRow], runs: ExperimentRuns
    ) -> list[ReproducedValue]:
        published_accuracies = {
            task: accuracy for row in rows for task, accuracy in row.accuracies.items()
        }
        return [
            reproduced_value(
                f"task_{task.key.replace('-', '_')}_{name}",
                f"binary tasks, accuracy of the last model; {task.key}, {arm}",
                final_accuracy(runs.audits[task.key], arm),
                published if name == "flip" else None,
                "higher",
            )
            for task, published in published_accuracies.items()
            for name, arm in (("fedavg", FEDAVG), ("flip", self._flip))
        ]


def _keys(row: AttributeRow) -> tuple[str, ...]:
    """Return the names of the audits of a row's tasks."""
    return tuple(task.key for task in row.quadruple.tasks)


def _is_run(row: AttributeRow, runs: ExperimentRuns) -> bool:
    """Return whether all tasks of a row were run, with a seed that all of them have."""
    if row.data != DATASET or not all(key in runs.audits for key in _keys(row)):
        return False
    return len(runs.common_seeds(_keys(row))) > 0


def _heading(row: AttributeRow) -> str:
    primary, other = row.quadruple.primary, row.quadruple.other
    return f"row {row.number}: {' and '.join(primary)} against {' or '.join(other)}"


def _headings(runs: ExperimentRuns) -> Mapping[str, str]:
    """Return the value prefix of each row, and of all rows, by heading."""
    prefixes = {
        _heading(row): f"row{row.number}" for row in read_attribute_rows() if _is_run(row, runs)
    }
    return {**prefixes, "all rows": "all"} if prefixes else {}


def _check_statements(values: Mapping[str, ReproducedValue]) -> tuple[PaperStatement, ...]:
    """Check the paper's statements against the intervals over all rows."""
    published_attack, affinity_attack = (
        values[f"all_{SAMPLES}"],
        values[f"all_{AFFINITY.format('flip')}"],
    )
    return (
        PaperStatement(
            "half",
            "If our FLiP works as expected, the testing accuracy should be about 50%",
            _is_guess(published_attack),
            "the paper's attack, federations with the same start: "
            f"{_interval(published_attack)}",
        ),
        PaperStatement(
            "absent",
            "both test data and training data hardly contain the features of the B1 and B2 "
            "categories",
            _is_guess(affinity_attack),
            "Overheard's attack on the models that the samples train: "
            f"{_interval(affinity_attack)}",
        ),
    )


def _is_guess(one: ReproducedValue) -> Holds:
    """Return "no" if the interval excludes 0.5; an interval cannot show equality."""
    includes_half = one.low is None or one.high is None or one.low <= 0.5 <= one.high
    return "undecided" if includes_half else "no"


def _interval(one: ReproducedValue) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "not measured"
    return f"{100 * one.value:.0f} % ({100 * one.low:.0f} - {100 * one.high:.0f})"
