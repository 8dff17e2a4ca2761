"""Figure 5: all sources of leakage, and validation, for a centralized model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from overheard.drawing.figures import ReportFigure
from overheard.learning.models.shift_conv import ShiftConv
from overheard.papers.shift.differences import CENTRALISED, common
from overheard.papers.shift.divergence import all_hold, is_above, less, mean_by_run, mean_of
from overheard.papers.shift.drawings import plate
from overheard.papers.shift.experiment import (
    Followings,
    ShiftAnswer,
    ShiftExperiment,
    exchange,
)
from overheard.papers.shift.measure import ACCURACY, LOSS, SOURCES, LeakageMeasure
from overheard.papers.shift.plans import centralised
from overheard.papers.shift.words import by_answer, number, off_trend
from overheard.papers.shift.world import MNIST, RATE, ShiftScenario, ShiftSize
from overheard.plans.plan import Plan

EVEN = 0.8
"""Share of even labels after the shift."""

AUDIT = "audit"

REDUCED = replace(MNIST.reduced, model=ShiftConv(), rate=3 * RATE, auxiliary=200, virtual=None)
"""The size of a quick run, with the paper's network: its layers differ more than a small
one's."""


@final
@dataclass(frozen=True, slots=True)
class CentralisedExperiment(ShiftExperiment):
    """One model with one epoch per round.

    Args:
        world: data set and federation.
        reduced: size of a quick run.
        name: name of the figure.

    """

    world: ShiftScenario = MNIST
    reduced: ShiftSize = REDUCED
    name: str = "figure5"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return (
            f"Sources of leakage and validation around a shift: one model on {self.world.name}"
        )

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return f"{common(self.world)} {CENTRALISED}"

    def measures(self) -> tuple[LeakageMeasure, ...]:
        """Return all nine sources, and validation."""
        return (*SOURCES, LOSS, ACCURACY)

    def size(self, *, quick: bool) -> ShiftSize:
        """Return the size of the run."""
        return self.reduced if quick else self.world.full

    def audits(self, size: ShiftSize) -> Mapping[str, Plan]:
        """Return the plan of one audit."""
        return {AUDIT: centralised(self.world, size, EVEN, self.measures())}

    def plates(self, audits: Mapping[str, Followings]) -> tuple[ReportFigure, ...]:
        """Draw every measure by round, one panel each."""
        measurements = audits[AUDIT]
        return (
            plate(
                "Figure 5a: the sources of leakage",
                [(source.name, {"the shift": measurements.of(source)}) for source in SOURCES],
                [value for source in SOURCES for value in measurements.numbers(source)],
            ),
            plate(
                "Figure 5b: validation",
                [
                    (each.name, {"the shift": measurements.of(each)})
                    for each in (LOSS, ACCURACY)
                ],
                [value for each in (LOSS, ACCURACY) for value in measurements.numbers(each)],
            ),
        )

    def answers(self, audits: Mapping[str, Followings]) -> Mapping[str, ShiftAnswer]:
        """Check that the sources show the shift, weights least, and that the loss does not."""
        measurements = audits[AUDIT]
        shows = {source.name: measurements.divergence(source).shows for source in SOURCES}
        loss = measurements.divergence(LOSS)
        weights, others = (
            mean_of(
                [
                    measurements.divergence(source).deviations
                    for source in SOURCES
                    if kind(source)
                ]
            )
            for kind in (_is_of_weights, _is_not_of_weights)
        )
        lead = mean_by_run(less(others, weights))
        return {
            "exchange_is_silent": exchange(
                {source.name: measurements.divergence(source) for source in SOURCES}
            ),
            "every_source_shows": ShiftAnswer(all_hold(list(shows.values())), by_answer(shows)),
            "loss_is_silent": ShiftAnswer(loss.is_silent, off_trend(loss)),
            "weights_are_least": ShiftAnswer(
                is_above(lead, 0.0),
                "mean deviation of representations and gradients minus that of weights, in "
                f"standard errors: {number(lead)}",
            ),
        }


def _is_of_weights(measure: LeakageMeasure) -> bool:
    return measure.key.startswith("weights")


def _is_not_of_weights(measure: LeakageMeasure) -> bool:
    return not _is_of_weights(measure)
