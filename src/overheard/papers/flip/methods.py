"""Distillation methods besides FLiP's: accuracy by time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from overheard.drawing.charts import legend_chart
from overheard.drawing.figures import Panel, ReportFigure
from overheard.drawing.line_charts import Axis, ChartLine, lines_chart
from overheard.findings.finding import ArmRun, Audit
from overheard.learning.distillation.methods.distribution_matching import DistributionMatching
from overheard.learning.distillation.methods.flip import Flip
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.flip.accuracy import COMMON
from overheard.papers.flip.world import MNIST, SMALL, TEN_A_STEP, FlipScenario
from overheard.papers.numbers_table import numbers_table
from overheard.papers.reading import BOOTSTRAP, figure, last_accuracy
from overheard.papers.runs import Runs
from overheard.papers.setting import setting
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.questions.label_shares.attacks.distilled_labels import DistilledLabels
from overheard.statistics.estimate import Estimate, estimate_mean

ONE_BY_ONE = "FLiP one example a step"
TOGETHER = "FLiP ten examples a step"
MATCHING = "distribution matching"
WAYS = (ONE_BY_ONE, TOGETHER, MATCHING)

MARKS = (0.9, 0.95)
"""Accuracies for which the time to reach them is reported."""

THREAT = ThreatPlan(attacks=(DistilledLabels(),), by_round=False)
"""A cheap threat that reads a few distilled sets and no client model."""


@final
@dataclass(frozen=True, slots=True)
class Ways:
    """A scenario and the arms of its distillation methods.

    Args:
        world: data, network, FedAvg, and FLiP with one example per step.
        together: arm of FLiP with ten examples per step.
        matching: arm of distribution matching.

    """

    world: FlipScenario
    together: ArmPlan
    matching: ArmPlan

    def plan(self) -> Plan:
        """Build the plan with FedAvg and each distillation method."""
        scenario, samples = self.world, self.world.samples[0]
        plan = scenario.plan((THREAT,), auxiliary=100)
        one_by_one = ArmPlan(
            name=ONE_BY_ONE,
            distillation=replace(scenario.flip, samples=samples),
            rounds=scenario.flip_rounds,
        )
        arms = (plan.arms[0], one_by_one, self.together, self.matching)
        return plan.model_copy(update={"arms": arms})


REDUCED = Ways(
    replace(SMALL, flip=Flip(batch=256, halve_every=60), flip_rounds=120, seeds=(0,)),
    ArmPlan(name=TOGETHER, distillation=TEN_A_STEP, rounds=250),
    ArmPlan(name=MATCHING, distillation=DistributionMatching(), rounds=250),
)

FULL = Ways(
    MNIST,
    ArmPlan(name=TOGETHER, distillation=TEN_A_STEP, rounds=500),
    ArmPlan(name=MATCHING, distillation=DistributionMatching(), rounds=1000),
)


@final
@dataclass(frozen=True, slots=True)
class MethodsExperiment(Experiment, Drawn):
    """Distillation methods at equal accuracy and at equal time.

    Args:
        full: methods of a full run.
        reduced: methods of a quick run.
        name: name of the experiment.

    """

    full: Ways = FULL
    reduced: Ways = REDUCED
    name: str = "methods"

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return "Distillation methods, at equal accuracy and at equal time"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{COMMON} The paper has only the first of these methods and reports no times. "
            "Times are seconds of all cores during the rounds, so they depend on this "
            "machine. Those of FLiP include two to three seconds in which the network's "
            "operations are recorded. In a quick run MNIST has 14 x 14 pixels."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan with all methods."""
        return {"mnist": (self.reduced if quick else self.full).plan()}

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return each method's last accuracy, its time, and its accuracy at equal time."""
        audit, run = runs.audits["mnist"], runs.plans["mnist"]
        context = setting("mnist", run, self.full.plan())
        values = [
            figure(
                "fedavg_accuracy",
                f"{context}; FedAvg, the last model",
                last_accuracy(audit, "FedAvg"),
                None,
                "higher",
            )
        ]
        shortest = min(_seconds(one) for method in WAYS for one in _runs(audit, method))
        for method, key in zip(WAYS, ("one_by_one", "together", "matching"), strict=True):
            curves = [_curve(one) for one in _runs(audit, method)]
            values += [
                figure(
                    f"{key}_accuracy",
                    f"{context}; {method}, the last model",
                    last_accuracy(audit, method),
                    None,
                    "higher",
                ),
                figure(
                    f"{key}_seconds",
                    f"{context}; {method}, seconds of all rounds",
                    _over_seeds(audit, method, [one[-1][0] for one in curves]),
                    None,
                    "lower",
                ),
                figure(
                    f"{key}_accuracy_at_equal_time",
                    f"{context}; {method}, after {shortest:.0f} seconds",
                    _over_seeds(
                        audit, method, [_accuracy_after(one, shortest) for one in curves]
                    ),
                    None,
                    "higher",
                ),
            ]
            for target in MARKS:
                values.append(_first_reach(audit, method, target, f"{key}_seconds_to", context))
        return tuple(values)

    def drawing(self, runs: Runs, values: Sequence[Figure]) -> Drawing:
        """Draw the accuracy against seconds."""
        audit = runs.audits["mnist"]
        curves = {method: _curve(_runs(audit, method)[0]) for method in WAYS}
        fedavg = last_accuracy(audit, "FedAvg").mean
        end = max(curve[-1][0] for curve in curves.values())
        title = "Accuracy by the time of distillation"
        chart = lines_chart(
            [
                ChartLine(index, [x for x, _ in curve], [100 * y for _, y in curve])
                for index, curve in enumerate(curves.values())
            ],
            ChartLine(0, (0.0, end), (100 * fedavg, 100 * fedavg)),
            Axis("seconds of all cores", 0.0, 1.02 * end),
            Axis("accuracy, %", 50.0, 100.0),
            title,
        )
        page_figure = ReportFigure(
            title,
            "The first seed of each method. Dashed line: the accuracy of FedAvg.",
            legend_chart(list(WAYS), False, f"Legend: {title}"),
            (Panel("", chart),),
            numbers_table(title, values),
            True,
        )
        return Drawing((page_figure,))


Curve = Sequence[tuple[float, float]]
"""Seconds and accuracy by round."""


def _runs(audit: Audit, method: str) -> list[ArmRun]:
    return [one for one in audit.arms if one.arm == method]


def _seconds(run: ArmRun) -> float:
    """Return the seconds of all cores, or wall-clock seconds if those are not known."""
    assert run.seconds is not None
    return run.seconds.wall if run.seconds.cores is None else run.seconds.cores


def _curve(run: ArmRun) -> Curve:
    """Return the accuracy by time, with the run's time divided equally among its rounds."""
    last = max(run.accuracy)
    return [
        (_seconds(run) * number / last, value) for number, value in sorted(run.accuracy.items())
    ]


def _accuracy_after(curve: Curve, seconds: float) -> float:
    """Return the last accuracy that was reached by then."""
    return [value for after, value in curve if after <= seconds][-1]


def _first_reach(audit: Audit, method: str, target: float, key: str, context: str) -> Figure:
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
        return Figure(name, description, None, None, None, None, None)
    seconds = _over_seeds(audit, method, times)
    return figure(name, f"{context}; {method}, seconds to {target:.0%}", seconds, None, "lower")


def _over_seeds(audit: Audit, method: str, values: Sequence[float]) -> Estimate:
    seeds = np.array([one.seed for one in _runs(audit, method)])
    return estimate_mean(np.array(values), seeds, BOOTSTRAP)
