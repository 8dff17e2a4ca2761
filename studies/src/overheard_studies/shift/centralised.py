"""Figure 5: all sources of leakage, and validation, for a centralized model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from overheard.drawing.figures import ReportFigure
from overheard.learning.models.shift_conv import ShiftConv
from overheard.plans.plan import Plan
from overheard_studies.shift.charts import bands_figure
from overheard_studies.shift.differences import CENTRALISED, common_differences
from overheard_studies.shift.divergence import (
    all_hold,
    is_above,
    mean_over_runs,
    mean_within_runs,
    subtract_runs,
)
from overheard_studies.shift.evidence import (
    describe_divergence,
    format_estimate,
    group_by_verdict,
)
from overheard_studies.shift.experiment import (
    AuditMeasurements,
    ShiftExperiment,
    StatementVerdict,
    check_exchange,
)
from overheard_studies.shift.measure import ACCURACY, LEAKAGE_SOURCES, LOSS, LeakageMeasure
from overheard_studies.shift.plans import build_centralized_plan
from overheard_studies.shift.scenarios import LEARNING_RATE, MNIST, ShiftScenario, ShiftSize

EVEN_SHARE = 0.8
"""Share of even labels after the shift."""

AUDIT = "audit"

REDUCED = replace(
    MNIST.reduced, model=ShiftConv(), rate=3 * LEARNING_RATE, auxiliary=200, virtual=None
)
"""The size of a quick run, with the paper's network: its layers differ more than a small
one's."""


@final
@dataclass(frozen=True, slots=True)
class CentralisedExperiment(ShiftExperiment):
    """One model with one epoch per round.

    Args:
        scenario: data set and federation.
        reduced: size of a quick run.
        name: name of the figure.

    """

    scenario: ShiftScenario = MNIST
    reduced: ShiftSize = REDUCED
    name: str = "figure5"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return (
            "Sources of leakage and validation around a shift: one model on "
            f"{self.scenario.name}"
        )

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return f"{common_differences(self.scenario)} {CENTRALISED}"

    def measures(self) -> tuple[LeakageMeasure, ...]:
        """Return all nine sources, and validation."""
        return (*LEAKAGE_SOURCES, LOSS, ACCURACY)

    def size(self, *, quick: bool) -> ShiftSize:
        """Return the size of the run."""
        return self.reduced if quick else self.scenario.full

    def build_plans(self, size: ShiftSize) -> Mapping[str, Plan]:
        """Return the plan of one audit."""
        return {AUDIT: build_centralized_plan(self.scenario, size, EVEN_SHARE, self.measures())}

    def draw_figures(self, audits: Mapping[str, AuditMeasurements]) -> tuple[ReportFigure, ...]:
        """Draw every measure by round, one panel each."""
        measurements = audits[AUDIT]
        return (
            bands_figure(
                "Figure 5a: the sources of leakage",
                [
                    (source.name, {"the shift": measurements.series_of(source)})
                    for source in LEAKAGE_SOURCES
                ],
                [
                    value
                    for source in LEAKAGE_SOURCES
                    for value in measurements.values_of(source)
                ],
            ),
            bands_figure(
                "Figure 5b: validation",
                [
                    (each.name, {"the shift": measurements.series_of(each)})
                    for each in (LOSS, ACCURACY)
                ],
                [value for each in (LOSS, ACCURACY) for value in measurements.values_of(each)],
            ),
        )

    def check_statements(
        self, audits: Mapping[str, AuditMeasurements]
    ) -> Mapping[str, StatementVerdict]:
        """Check that the sources show the shift, weights least, and that the loss does not."""
        measurements = audits[AUDIT]
        shows = {
            source.name: measurements.divergence(source).shows_shift
            for source in LEAKAGE_SOURCES
        }
        loss = measurements.divergence(LOSS)
        weights, others = (
            mean_within_runs(
                [
                    measurements.divergence(source).deviations
                    for source in LEAKAGE_SOURCES
                    if kind(source)
                ]
            )
            for kind in (_is_of_weights, _is_not_of_weights)
        )
        lead = mean_over_runs(subtract_runs(others, weights))
        return {
            "exchange_is_silent": check_exchange(
                {source.name: measurements.divergence(source) for source in LEAKAGE_SOURCES}
            ),
            "every_source_shows": StatementVerdict(
                all_hold(list(shows.values())), group_by_verdict(shows)
            ),
            "loss_is_silent": StatementVerdict(loss.hides_shift, describe_divergence(loss)),
            "weights_are_least": StatementVerdict(
                is_above(lead, 0.0),
                "mean deviation of representations and gradients minus that of weights, in "
                f"standard errors: {format_estimate(lead)}",
            ),
        }


def _is_of_weights(measure: LeakageMeasure) -> bool:
    return measure.key.startswith("weights")


def _is_not_of_weights(measure: LeakageMeasure) -> bool:
    return not _is_of_weights(measure)
