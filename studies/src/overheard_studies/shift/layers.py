"""Figure 6: the cosine similarity by layer, for a centralized model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportFigure
from overheard.plans.plan import Plan
from overheard.questions.shift.estimators.model_comparisons import Information
from overheard.report.experiment_page import Holds
from overheard.statistics.estimate import Estimate
from overheard_studies.shift.centralised import AUDIT, EVEN_SHARE, REDUCED
from overheard_studies.shift.charts import bands_figure, normalize_series
from overheard_studies.shift.differences import CENTRALISED, common_differences
from overheard_studies.shift.divergence import all_hold, is_above, mean_over_runs, subtract_runs
from overheard_studies.shift.evidence import format_estimate, group_by_verdict
from overheard_studies.shift.experiment import (
    AuditMeasurements,
    ShiftExperiment,
    StatementVerdict,
)
from overheard_studies.shift.measure import INFORMATION, LeakageMeasure, source_of_leakage
from overheard_studies.shift.plans import build_centralized_plan
from overheard_studies.shift.scenarios import MNIST, ShiftScenario, ShiftSize

LAYERS = {
    "0": "convolution of 32",
    "2": "convolution of 64",
    "6": "linear 128",
    "8": "linear 10",
}
"""The layers of `shift_conv` that have weights, from first to last."""

NORMALIZATION_NOTE = (
    "Each run is scaled to 0..1 by its own smallest and largest value; the paper does not say "
    "how it normalizes."
)


@final
@dataclass(frozen=True, slots=True)
class LayersExperiment(ShiftExperiment):
    """One model with one epoch per round, and one measure per layer.

    Args:
        scenario: data set of images, and federation.
        reduced: size of a quick run.
        name: name of the figure.

    """

    scenario: ShiftScenario = MNIST
    reduced: ShiftSize = REDUCED
    name: str = "figure6"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"Cosine similarity by layer around a shift: one model on {self.scenario.name}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return f"{common_differences(self.scenario)} {CENTRALISED} {NORMALIZATION_NOTE}"

    def measures(self) -> tuple[LeakageMeasure, ...]:
        """Return the cosine of each kind of information at each layer."""
        return tuple(_at(kind, layer) for kind in INFORMATION for layer in LAYERS)

    def size(self, *, quick: bool) -> ShiftSize:
        """Return the size of the run."""
        return self.reduced if quick else self.scenario.full

    def build_plans(self, size: ShiftSize) -> Mapping[str, Plan]:
        """Return the plan of one audit."""
        return {AUDIT: build_centralized_plan(self.scenario, size, EVEN_SHARE, self.measures())}

    def draw_figures(self, audits: Mapping[str, AuditMeasurements]) -> tuple[ReportFigure, ...]:
        """Draw a panel for each kind of information, with one line per layer."""
        measurements = audits[AUDIT]
        panels = [
            (
                f"cosine of {kind}",
                {
                    words: normalize_series(measurements.series_of(_at(kind, layer)))
                    for layer, words in LAYERS.items()
                },
            )
            for kind in INFORMATION
        ]
        return (bands_figure("Figure 6: by layer, normalized", panels, measurements.values),)

    def check_statements(
        self, audits: Mapping[str, AuditMeasurements]
    ) -> Mapping[str, StatementVerdict]:
        """Check that the last layer diverges more from its trend than the first."""
        leads = {kind: _lead(audits[AUDIT], kind) for kind in INFORMATION}
        holds: dict[str, Holds] = {kind: is_above(lead, 0.0) for kind, lead in leads.items()}
        words = {
            kind: "deviation of the last layer minus that of the first: "
            f"{format_estimate(lead)}"
            for kind, lead in leads.items()
        }
        return {
            "later_layers_tell_more": StatementVerdict(
                all_hold(list(holds.values())), group_by_verdict(holds)
            ),
            "weights_react_late": StatementVerdict(holds["weights"], words["weights"]),
            "representations_react_late": StatementVerdict(
                holds["representations"], words["representations"]
            ),
        }


def _at(information: Information, layer: str) -> LeakageMeasure:
    return source_of_leakage(information, "cosine", layer)


def _lead(measurements: AuditMeasurements, information: Information) -> Estimate | None:
    first, *_, last = (
        measurements.divergence(_at(information, layer)).deviations for layer in LAYERS
    )
    return mean_over_runs(subtract_runs(last, first))
