"""Figures 8 to 10: a source of leakage and the validation loss, by number of clients."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportFigure
from overheard.papers.shift.differences import common
from overheard.papers.shift.divergence import all_hold, is_above, less, mean_by_run
from overheard.papers.shift.drawings import plate
from overheard.papers.shift.experiment import (
    Followings,
    ShiftAnswer,
    ShiftExperiment,
    exchange,
)
from overheard.papers.shift.measure import LOSS, LeakageMeasure
from overheard.papers.shift.plans import federation, ratio
from overheard.papers.shift.words import by_answer, number
from overheard.papers.shift.world import CLIENTS, SEVERAL, ShiftScenario, ShiftSize
from overheard.plans.plan import Plan

FEW, MANY = 2, 5
"""The numbers of clients that are compared for dilution.

Both have one shifting client; ten clients have three.
"""


@final
@dataclass(frozen=True, slots=True)
class ScalabilityExperiment(ShiftExperiment):
    """Two to ten clients, of which one shifts, or three of ten.

    Args:
        name: name of the figure.
        world: data set and federation.
        source: source of leakage that the paper shows.

    """

    name: str
    world: ShiftScenario
    source: LeakageMeasure

    @property
    def title(self) -> str:
        """Title of the figure."""
        return (
            f"The {self.source.name} around a shift to {ratio(self.world.even)} by number of "
            f"clients, {self.world.name}"
        )

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        several = ", ".join(f"{shift} of {clients}" for clients, shift in SEVERAL.items())
        return (
            f"{common(self.world)} One client shifts, or {several}. The attacker knows the "
            "number of clients and uses the mean model of the others."
        )

    def measures(self) -> tuple[LeakageMeasure, ...]:
        """Return the source of leakage and the validation loss."""
        return (self.source, LOSS)

    def size(self, *, quick: bool) -> ShiftSize:
        """Return the size of the run."""
        return self.world.reduced if quick else self.world.full

    def audits(self, size: ShiftSize) -> Mapping[str, Plan]:
        """Return one plan per number of clients."""
        return {
            _key(clients): federation(
                self.world, size, clients, self.world.even, self.measures()
            )
            for clients in CLIENTS
        }

    def plates(self, audits: Mapping[str, Followings]) -> tuple[ReportFigure, ...]:
        """Draw the source and the loss by round, with one line per number of clients."""
        panels = [
            (
                f"{part}: {one.name}",
                {f"{clients} clients": audits[_key(clients)].of(one) for clients in CLIENTS},
            )
            for part, one in zip("ab", self.measures(), strict=True)
        ]
        values = [value for each in audits.values() for value in each.figures]
        return (plate(f"Figure {self.name.removeprefix('figure')}", panels, values),)

    def answers(self, audits: Mapping[str, Followings]) -> Mapping[str, ShiftAnswer]:
        """Check that the shift shows at every number of clients, and not in the loss."""
        sources = {n: audits[_key(n)].divergence(self.source) for n in CLIENTS}
        shows = {f"{n} clients": sources[n].shows for n in CLIENTS}
        silent = {f"{n} clients": audits[_key(n)].divergence(LOSS).is_silent for n in CLIENTS}
        dilution = mean_by_run(less(sources[FEW].deviations, sources[MANY].deviations))
        return {
            "exchange_is_silent": exchange({f"{n} clients": sources[n] for n in CLIENTS}),
            "shows_at_every_number": ShiftAnswer(
                all_hold(list(shows.values())), by_answer(shows)
            ),
            "loss_is_silent": ShiftAnswer(all_hold(list(silent.values())), by_answer(silent)),
            "is_diluted": ShiftAnswer(
                is_above(dilution, 0.0),
                f"deviation among {FEW} clients minus that among {MANY}, in standard errors: "
                f"{number(dilution)}",
            ),
        }


def _key(clients: int) -> str:
    return f"clients_{clients}"
