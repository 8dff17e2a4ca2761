"""Figure 5: every source of leakage, and validation, of a model without a federation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from overheard.drawing.plates import Plate
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
"""The share of even labels after the shift."""

AUDIT = "audit"

REDUCED = replace(MNIST.reduced, model=ShiftConv(), rate=3 * RATE, auxiliary=200, virtual=None)
"""With the paper's network, whose layers differ more than those of a small one."""


@final
@dataclass(frozen=True, slots=True)
class CentralisedExperiment(ShiftExperiment):
    """One model, an epoch a round.

    Args:
        world: whose data.
        reduced: how it is run in a hurry.
        name: of the figure.

    """

    world: ShiftScenario = MNIST
    reduced: ShiftSize = REDUCED
    name: str = "figure5"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return (
            f"Sources of leakage and validation around a shift: one model on {self.world.name}"
        )

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return f"{common(self.world)} {CENTRALISED}"

    def measures(self) -> tuple[LeakageMeasure, ...]:
        """All nine sources, and validation."""
        return (*SOURCES, LOSS, ACCURACY)

    def size(self, *, quick: bool) -> ShiftSize:
        """How much is run."""
        return self.reduced if quick else self.world.full

    def audits(self, size: ShiftSize) -> Mapping[str, Plan]:
        """One audit."""
        return {AUDIT: centralised(self.world, size, EVEN, self.measures())}

    def plates(self, told: Mapping[str, Followings]) -> tuple[Plate, ...]:
        """Every measure by round, a panel each."""
        one = told[AUDIT]
        return (
            plate(
                "Figure 5a: the sources of leakage",
                [(source.name, {"the shift": one.of(source)}) for source in SOURCES],
                [figure for source in SOURCES for figure in one.numbers(source)],
            ),
            plate(
                "Figure 5b: validation",
                [(each.name, {"the shift": one.of(each)}) for each in (LOSS, ACCURACY)],
                [figure for each in (LOSS, ACCURACY) for figure in one.numbers(each)],
            ),
        )

    def answers(self, told: Mapping[str, Followings]) -> Mapping[str, ShiftAnswer]:
        """Whether the sources show the shift, the loss does not, and weights do least."""
        one = told[AUDIT]
        shows = {source.name: one.divergence(source).shows for source in SOURCES}
        loss = one.divergence(LOSS)
        weights, others = (
            mean_of([one.divergence(source).deviations for source in SOURCES if kind(source)])
            for kind in (_is_of_weights, _is_not_of_weights)
        )
        lead = mean_by_run(less(others, weights))
        return {
            "exchange_is_silent": exchange(
                {source.name: one.divergence(source) for source in SOURCES}
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
