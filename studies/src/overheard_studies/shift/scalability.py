"""Figures 8 to 10: a source of leakage and the validation loss, by number of clients."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportFigure
from overheard.plans.plan import Plan
from overheard_studies.shift.charts import bands_figure
from overheard_studies.shift.differences import common_differences
from overheard_studies.shift.divergence import all_hold, is_above, mean_over_runs, subtract_runs
from overheard_studies.shift.evidence import format_estimate, group_by_verdict
from overheard_studies.shift.experiment import (
    AuditMeasurements,
    ShiftExperiment,
    StatementVerdict,
    check_exchange,
)
from overheard_studies.shift.measure import LOSS, LeakageMeasure
from overheard_studies.shift.plans import build_federated_plan, format_ratio
from overheard_studies.shift.scenarios import (
    CLIENTS,
    SHIFTING_CLIENTS,
    ShiftScenario,
    ShiftSize,
)

FEW_CLIENTS, MANY_CLIENTS = 2, 5
"""The numbers of clients that are compared for dilution.

Both have one shifting client; ten clients have three.
"""


@final
@dataclass(frozen=True, slots=True)
class ScalabilityExperiment(ShiftExperiment):
    """Two to ten clients, of which one shifts, or three of ten.

    Args:
        name: name of the figure.
        scenario: data set and federation.
        source: source of leakage that the paper shows.

    """

    name: str
    scenario: ShiftScenario
    source: LeakageMeasure

    @property
    def title(self) -> str:
        """Title of the figure."""
        return (
            f"The {self.source.name} around a shift to "
            f"{format_ratio(self.scenario.even_share)} by number of "
            f"clients, {self.scenario.name}"
        )

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        several = ", ".join(
            f"{shift} of {clients}" for clients, shift in SHIFTING_CLIENTS.items()
        )
        return (
            f"{common_differences(self.scenario)} One client shifts, or {several}. The "
            "attacker knows the "
            "number of clients and uses the mean model of the others."
        )

    def measures(self) -> tuple[LeakageMeasure, ...]:
        """Return the source of leakage and the validation loss."""
        return (self.source, LOSS)

    def size(self, *, quick: bool) -> ShiftSize:
        """Return the size of the run."""
        return self.scenario.reduced if quick else self.scenario.full

    def build_plans(self, size: ShiftSize) -> Mapping[str, Plan]:
        """Return one plan per number of clients."""
        return {
            _key(clients): build_federated_plan(
                self.scenario, size, clients, self.scenario.even_share, self.measures()
            )
            for clients in CLIENTS
        }

    def draw_figures(self, audits: Mapping[str, AuditMeasurements]) -> tuple[ReportFigure, ...]:
        """Draw the source and the loss by round, with one line per number of clients."""
        panels = [
            (
                f"{part}: {one.name}",
                {
                    f"{clients} clients": audits[_key(clients)].series_of(one)
                    for clients in CLIENTS
                    if _key(clients) in audits
                },
            )
            for part, one in zip("ab", self.measures(), strict=True)
        ]
        values = [value for each in audits.values() for value in each.values]
        return (bands_figure(f"Figure {self.name.removeprefix('figure')}", panels, values),)

    def check_statements(
        self, audits: Mapping[str, AuditMeasurements]
    ) -> Mapping[str, StatementVerdict]:
        """Check that the shift shows at every number of clients, and not in the loss."""
        sources = {n: audits[_key(n)].divergence(self.source) for n in CLIENTS}
        shows = {f"{n} clients": sources[n].shows_shift for n in CLIENTS}
        silent = {f"{n} clients": audits[_key(n)].divergence(LOSS).hides_shift for n in CLIENTS}
        dilution = mean_over_runs(
            subtract_runs(sources[FEW_CLIENTS].deviations, sources[MANY_CLIENTS].deviations)
        )
        return {
            "exchange_is_silent": check_exchange({f"{n} clients": sources[n] for n in CLIENTS}),
            "shows_at_every_number": StatementVerdict(
                all_hold(list(shows.values())), group_by_verdict(shows)
            ),
            "loss_is_silent": StatementVerdict(
                all_hold(list(silent.values())), group_by_verdict(silent)
            ),
            "is_diluted": StatementVerdict(
                is_above(dilution, 0.0),
                f"deviation among {FEW_CLIENTS} clients minus that among {MANY_CLIENTS}, in "
                "standard errors: "
                f"{format_estimate(dilution)}",
            ),
        }


def _key(clients: int) -> str:
    return f"clients_{clients}"
