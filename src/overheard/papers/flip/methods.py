"""Ways to distil beside FLiP's: what a model is worth after which time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from overheard.drawing.charts import legend_chart
from overheard.drawing.line_charts import Axis, ChartLine, lines_chart
from overheard.drawing.plates import Panel, Plate
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
from overheard.statistics.estimate import Estimate, estimate

ONE_BY_ONE = "FLiP one example a step"
TOGETHER = "FLiP ten examples a step"
MATCHING = "distribution matching"
WAYS = (ONE_BY_ONE, TOGETHER, MATCHING)

MARKS = (0.9, 0.95)
"""Accuracies to the first reach of which the time is told."""

THREAT = ThreatPlan(attacks=(DistilledLabels(),), by_round=False)
"""It reads a few sets, and no model of a client."""


@final
@dataclass(frozen=True, slots=True)
class Ways:
    """A world, and how long each way distils in it.

    Args:
        world: data, network, FedAvg, and how FLiP distils with one example a step.
        together: how FLiP distils with ten.
        matching: distribution matching.

    """

    world: FlipScenario
    together: ArmPlan
    matching: ArmPlan

    def plan(self) -> Plan:
        """FedAvg, and each way to distil."""
        world, samples = self.world, self.world.samples[0]
        plan = world.plan((THREAT,), auxiliary=100)
        one_by_one = ArmPlan(
            name=ONE_BY_ONE,
            distillation=replace(world.flip, samples=samples),
            rounds=world.flip_rounds,
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
    """Ways to distil at equal accuracy and at equal time.

    Args:
        full: what is run.
        reduced: what is run in a hurry.
        name: of the experiment.

    """

    full: Ways = FULL
    reduced: Ways = REDUCED
    name: str = "methods"

    @property
    def title(self) -> str:
        """What is shown."""
        return "Ways to distil, at equal accuracy and at equal time"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{COMMON} The paper has the first of these ways alone, and tells no times. Times "
            "are seconds of all cores that the rounds took, so they are this machine's; those "
            "of FLiP begin with two to three seconds in which the network is recorded. In a "
            "hurry MNIST has 14 x 14 pixels."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit with all ways."""
        return {"mnist": (self.reduced if quick else self.full).plan()}

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Of each way the last accuracy, its time, the time to some accuracies, and equals."""
        audit, run = runs.audits["mnist"], runs.plans["mnist"]
        where = setting("mnist", run, self.full.plan())
        told = [
            figure(
                "fedavg_accuracy",
                f"{where}; FedAvg, the last model",
                last_accuracy(audit, "FedAvg"),
                None,
                "higher",
            )
        ]
        shortest = min(_seconds(one) for way in WAYS for one in _runs(audit, way))
        for way, key in zip(WAYS, ("one_by_one", "together", "matching"), strict=True):
            curves = [_curve(one) for one in _runs(audit, way)]
            told += [
                figure(
                    f"{key}_accuracy",
                    f"{where}; {way}, the last model",
                    last_accuracy(audit, way),
                    None,
                    "higher",
                ),
                figure(
                    f"{key}_seconds",
                    f"{where}; {way}, seconds of all rounds",
                    _over_seeds(audit, way, [one[-1][0] for one in curves]),
                    None,
                    "lower",
                ),
                figure(
                    f"{key}_accuracy_at_equal_time",
                    f"{where}; {way}, after {shortest:.0f} seconds",
                    _over_seeds(audit, way, [_by(one, shortest) for one in curves]),
                    None,
                    "higher",
                ),
            ]
            for mark in MARKS:
                told.append(_first_reach(audit, way, mark, f"{key}_seconds_to", where))
        return tuple(told)

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """Accuracy against seconds."""
        audit = runs.audits["mnist"]
        curves = {way: _curve(_runs(audit, way)[0]) for way in WAYS}
        fedavg = last_accuracy(audit, "FedAvg").mean
        end = max(curve[-1][0] for curve in curves.values())
        title = "Accuracy by the time of distillation"
        chart = lines_chart(
            [
                ChartLine(place, [x for x, _ in curve], [100 * y for _, y in curve])
                for place, curve in enumerate(curves.values())
            ],
            ChartLine(0, (0.0, end), (100 * fedavg, 100 * fedavg)),
            Axis("seconds of all cores", 0.0, 1.02 * end),
            Axis("accuracy, %", 50.0, 100.0),
            title,
        )
        plate = Plate(
            title,
            "The first seed of each way. Dashed: what FedAvg comes to.",
            legend_chart(list(WAYS), False, f"Legend: {title}"),
            (Panel("", chart),),
            numbers_table(title, figures),
            True,
        )
        return Drawing((plate,))


Curve = Sequence[tuple[float, float]]
"""Seconds and accuracy, as rounds went on."""


def _runs(audit: Audit, way: str) -> list[ArmRun]:
    return [one for one in audit.arms if one.arm == way]


def _seconds(run: ArmRun) -> float:
    """Of all cores or, where nobody tells those, of the clock."""
    assert run.seconds is not None
    return run.seconds.wall if run.seconds.cores is None else run.seconds.cores


def _curve(run: ArmRun) -> Curve:
    """The accuracy after each share of the run's time; rounds take about as long as another."""
    last = max(run.accuracy)
    return [
        (_seconds(run) * number / last, value) for number, value in sorted(run.accuracy.items())
    ]


def _by(curve: Curve, seconds: float) -> float:
    """The last accuracy that was reached by then."""
    return [value for after, value in curve if after <= seconds][-1]


def _first_reach(audit: Audit, way: str, mark: float, key: str, where: str) -> Figure:
    """Seconds until a run is first worth so much; not measured where some never are."""
    name = f"{key}_{round(100 * mark)}"
    reached = [
        next((after for after, value in _curve(one) if value >= mark), None)
        for one in _runs(audit, way)
    ]
    there = [one for one in reached if one is not None]
    if len(there) < len(reached):
        told = f"{where}; {way}, {mark:.0%} was reached by {len(there)} of {len(reached)} seeds"
        return Figure(name, told, None, None, None, None, None)
    seconds = _over_seeds(audit, way, there)
    return figure(name, f"{where}; {way}, seconds to {mark:.0%}", seconds, None, "lower")


def _over_seeds(audit: Audit, way: str, values: Sequence[float]) -> Estimate:
    seeds = np.array([one.seed for one in _runs(audit, way)])
    return estimate(np.array(values), seeds, BOOTSTRAP)
