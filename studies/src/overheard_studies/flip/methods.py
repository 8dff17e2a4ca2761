"""FLiP, a variant of it and distribution matching: accuracy by time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from overheard.drawing.charts import legend_chart
from overheard.drawing.figures import Panel, ReportFigure
from overheard.drawing.line_charts import Axis, ChartLine, lines_chart
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun
from overheard.learning.distillation.methods.distribution_matching import DistributionMatching
from overheard.learning.distillation.methods.flip import Flip
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.questions.label_shares.attacks.distilled_labels import DistilledLabels
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.estimates import final_accuracy, reproduced_value
from overheard_studies.experiment import Experiment
from overheard_studies.flip.accuracy import COMMON_DIFFERENCES
from overheard_studies.flip.scenarios import MNIST, QUICK_MNIST, TEN_PER_STEP_FLIP, FlipScenario
from overheard_studies.page_content import IllustratedExperiment, PageContent
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.values_table import tabulate_values

ONE_PER_STEP = "FLiP one example a step"
TEN_PER_STEP = "FLiP ten examples a step"
MATCHING = "distribution matching"
METHODS = (ONE_PER_STEP, TEN_PER_STEP, MATCHING)

TARGET_ACCURACIES = (0.9, 0.95)
"""Accuracies for which the time to reach them is reported."""

THREAT = ThreatPlan(attacks=(DistilledLabels(),), by_round=False)
"""A cheap threat that reads a few distilled sets and no client model."""


@final
@dataclass(frozen=True, slots=True)
class DistillationMethods:
    """A scenario and the arms of its distillation methods.

    Args:
        scenario: data, network, FedAvg, and FLiP with one example per step.
        ten_per_step: arm of FLiP with ten examples per step.
        matching: arm of distribution matching.

    """

    scenario: FlipScenario
    ten_per_step: ArmPlan
    matching: ArmPlan

    def build_plan(self) -> Plan:
        """Build the plan with FedAvg and each distillation method."""
        scenario, samples = self.scenario, self.scenario.samples[0]
        plan = scenario.build_plan((THREAT,), auxiliary=100)
        one_by_one = ArmPlan(
            name=ONE_PER_STEP,
            distillation=replace(scenario.flip, samples=samples),
            rounds=scenario.flip_rounds,
        )
        arms = (plan.arms[0], one_by_one, self.ten_per_step, self.matching)
        return plan.model_copy(update={"arms": arms})


REDUCED = DistillationMethods(
    replace(QUICK_MNIST, flip=Flip(batch=256, halve_every=60), flip_rounds=120, seeds=(0,)),
    ArmPlan(name=TEN_PER_STEP, distillation=TEN_PER_STEP_FLIP, rounds=250),
    ArmPlan(name=MATCHING, distillation=DistributionMatching(), rounds=250),
)

FULL = DistillationMethods(
    MNIST,
    ArmPlan(name=TEN_PER_STEP, distillation=TEN_PER_STEP_FLIP, rounds=500),
    ArmPlan(name=MATCHING, distillation=DistributionMatching(), rounds=1000),
)


@final
@dataclass(frozen=True, slots=True)
class MethodsExperiment(Experiment, IllustratedExperiment):
    """Distillation methods at equal accuracy and at equal time.

    Args:
        full: methods of a full run.
        reduced: methods of a quick run.
        name: name of the experiment.

    """

    full: DistillationMethods = FULL
    reduced: DistillationMethods = REDUCED
    name: str = "methods"

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return "Distillation methods, at equal accuracy and at equal time"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{COMMON_DIFFERENCES} The paper has only the first of these methods and reports "
            "no times. "
            "Times are seconds of all cores during the rounds, so they depend on this "
            "machine. Those of FLiP include two to three seconds in which the network's "
            "operations are recorded. In a quick run MNIST has 14 x 14 pixels."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan with all methods."""
        return {"mnist": (self.reduced if quick else self.full).build_plan()}

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return each method's last accuracy, its time, and its accuracy at equal time."""
        audit, run = runs.audits["mnist"], runs.plans["mnist"]
        context = describe_setting("mnist", run, self.full.build_plan())
        values = [
            reproduced_value(
                "fedavg_accuracy",
                f"{context}; FedAvg, the last model",
                final_accuracy(audit, "FedAvg"),
                None,
                "higher",
            )
        ]
        shortest = min(_seconds(one) for method in METHODS for one in _runs(audit, method))
        for method, key in zip(METHODS, ("one_by_one", "together", "matching"), strict=True):
            curves = [_curve(one) for one in _runs(audit, method)]
            values += [
                reproduced_value(
                    f"{key}_accuracy",
                    f"{context}; {method}, the last model",
                    final_accuracy(audit, method),
                    None,
                    "higher",
                ),
                reproduced_value(
                    f"{key}_seconds",
                    f"{context}; {method}, seconds of all rounds",
                    _over_seeds(audit, method, [one[-1][0] for one in curves]),
                    None,
                    "lower",
                ),
                reproduced_value(
                    f"{key}_accuracy_at_equal_time",
                    f"{context}; {method}, after {shortest:.0f} seconds",
                    _over_seeds(
                        audit, method, [_accuracy_after(one, shortest) for one in curves]
                    ),
                    None,
                    "higher",
                ),
            ]
            for target in TARGET_ACCURACIES:
                values.append(_first_reach(audit, method, target, f"{key}_seconds_to", context))
        return tuple(values)

    def page_content(
        self, runs: ExperimentRuns, values: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw the accuracy against seconds."""
        audit = runs.audits["mnist"]
        curves = {method: _curve(_runs(audit, method)[0]) for method in METHODS}
        fedavg = final_accuracy(audit, "FedAvg").mean
        end = max(curve[-1][0] for curve in curves.values())
        title = "Accuracy by the time of distillation"
        chart = lines_chart(
            [
                ChartLine(index, [x for x, _ in curve], [100 * y for _, y in curve], method)
                for index, (method, curve) in enumerate(curves.items())
            ],
            ChartLine(0, (0.0, end), (100 * fedavg, 100 * fedavg)),
            Axis("seconds of all cores", 0.0, 1.02 * end),
            Axis("accuracy, %", 50.0, 100.0),
            title,
        )
        page_figure = ReportFigure(
            title,
            "The first seed of each method. Dashed line: the accuracy of FedAvg.",
            legend_chart(list(METHODS), False, f"Legend: {title}"),
            (Panel("", chart),),
            tabulate_values(title, values),
            True,
        )
        return PageContent((page_figure,))


AccuracyCurve = Sequence[tuple[float, float]]
"""Seconds and accuracy by round."""


def _runs(audit: Audit, method: str) -> list[ArmRun]:
    return [one for one in audit.arms if one.arm == method]


def _seconds(run: ArmRun) -> float:
    """Return the seconds of all cores, or wall-clock seconds if those are not known."""
    assert run.seconds is not None
    return run.seconds.wall if run.seconds.cores is None else run.seconds.cores


def _curve(run: ArmRun) -> AccuracyCurve:
    """Return the accuracy by time, with the run's time divided equally among its rounds."""
    last = max(run.accuracy)
    return [
        (_seconds(run) * number / last, value) for number, value in sorted(run.accuracy.items())
    ]


def _accuracy_after(curve: AccuracyCurve, seconds: float) -> float:
    """Return the last accuracy that was reached by then."""
    return [value for after, value in curve if after <= seconds][-1]


def _first_reach(
    audit: Audit, method: str, target: float, key: str, context: str
) -> ReproducedValue:
    """Return the seconds until an accuracy is first reached; unmeasured if a run never does."""
    name = f"{key}_{round(100 * target)}"
    reached = [
        next((after for after, value in _curve(one) if value >= target), None)
        for one in _runs(audit, method)
    ]
    times = [one for one in reached if one is not None]
    if len(times) < len(reached):
        description = (
            f"{context}; {method}, {target:.0%} was reached by {len(times)} of {len(reached)} "
            "seeds"
        )
        return ReproducedValue(name, description, None, None, None, None, None)
    seconds = _over_seeds(audit, method, times)
    return reproduced_value(
        name, f"{context}; {method}, seconds to {target:.0%}", seconds, None, "lower"
    )


def _over_seeds(audit: Audit, method: str, values: Sequence[float]) -> Estimate:
    seeds = np.array([one.seed for one in _runs(audit, method)])
    return estimate_mean(np.array(values), seeds)
