"""Figure 7: divergence of a source of leakage against that of the validation loss."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import correlation
from typing import final

from overheard.drawing.band_charts import ScatterPoint, diagonal_chart
from overheard.drawing.figures import Panel, ReportFigure
from overheard.plans.plan import Plan
from overheard.report.experiment_page import Holds
from overheard_studies.shift.differences import common_differences
from overheard_studies.shift.divergence import (
    Divergence,
    RunValues,
    all_hold,
    any_holds,
    is_above,
    mean_over_runs,
    subtract_runs,
)
from overheard_studies.shift.evidence import format_estimate, group_by_verdict
from overheard_studies.shift.experiment import (
    AuditMeasurements,
    ShiftExperiment,
    StatementVerdict,
    check_exchange,
)
from overheard_studies.shift.measure import LOSS, LeakageMeasure
from overheard_studies.shift.plans import build_federated_plan, format_ratio
from overheard_studies.shift.scenarios import ShiftScenario, ShiftSize
from overheard_studies.values_table import tabulate_values

EVEN_SHARES = (0.6, 0.7, 0.8, 0.9)
"""Shares of even labels after the shift; the control of each has 0.5."""

LARGEST_SUBTLE_SHARE = 0.7
"""The largest share that counts as subtle; the paper does not define it."""

CLIENTS = 2

LINEAR_CORRELATION = 0.9
"""The correlation above which a relationship counts as linear."""

SEVERITY_NOTE = (
    "The paper does not say which severities it ran, how it scales both divergences, or at "
    "which scale they are plotted. Here the severities are 60-40 to 90-10 of what is held. "
    "For the Census, where most people have the even label, these ratios are relative. "
    "Divergences are reported in standard errors of each trend, with the control at 50-50; "
    "shifts up to 70-30 count as subtle."
)


@final
@dataclass(frozen=True, slots=True)
class SensitivityExperiment(ShiftExperiment):
    """Two clients, one of which shifts, at several severities.

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
            f"Sensitivity of the {self.source.name} against validation loss, "
            f"{self.scenario.name}"
        )

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return f"{common_differences(self.scenario)} {SEVERITY_NOTE}"

    def measures(self) -> tuple[LeakageMeasure, ...]:
        """Return the source of leakage and the validation loss."""
        return (self.source, LOSS)

    def size(self, *, quick: bool) -> ShiftSize:
        """Return the size of the run."""
        return self.scenario.reduced if quick else self.scenario.full

    def build_plans(self, size: ShiftSize) -> Mapping[str, Plan]:
        """Return one plan per severity."""
        return {
            _key(even): build_federated_plan(
                self.scenario, size, CLIENTS, even, self.measures()
            )
            for even in EVEN_SHARES
        }

    def draw_figures(self, audits: Mapping[str, AuditMeasurements]) -> tuple[ReportFigure, ...]:
        """Draw one point per severity, and the diagonal."""
        sources, losses = self._divergences(audits)
        # The control is the same for all severities.
        first = next(iter(sources))
        dots = [
            *_dot(format_ratio(0.5), True, losses[first].control_deviations,
                  sources[first].control_deviations),
            *(
                dot
                for even in sources
                for dot in _dot(
                    format_ratio(even), False, losses[even].deviations, sources[even].deviations
                )
            ),
        ]  # fmt: skip
        chart = diagonal_chart(
            dots,
            "validation loss, divergence in standard errors",
            f"{self.source.name}, divergence in standard errors",
            self.title,
        )
        return (
            ReportFigure(
                f"Figure {self.name.removeprefix('figure')}: divergences, means over runs",
                "Above the line the source diverges more from its trend than the validation "
                "loss. Hollow dots: the control, with an exchange of examples and no shift.",
                None,
                (Panel("", chart),),
                tabulate_values(
                    "Divergences at each severity",
                    [value for one in audits.values() for value in one.values],
                ),
                True,
            ),
        )

    def check_statements(
        self, audits: Mapping[str, AuditMeasurements]
    ) -> Mapping[str, StatementVerdict]:
        """Check that subtle shifts show, and how divergence depends on severity."""
        sources, losses = self._divergences(audits)
        subtle = [even for even in EVEN_SHARES if even <= LARGEST_SUBTLE_SHARE]
        shows = {format_ratio(even): sources[even].shows_shift for even in subtle}
        silent: dict[str, Holds] = {
            format_ratio(even): losses[even].hides_shift for even in subtle
        }
        silent[f"shows at {format_ratio(EVEN_SHARES[-1])}"] = losses[
            EVEN_SHARES[-1]
        ].shows_shift
        loss_shows = {format_ratio(even): losses[even].shows_shift for even in subtle}
        leads = {
            format_ratio(even): mean_over_runs(
                subtract_runs(sources[even].deviations, losses[even].deviations)
            )
            for even in EVEN_SHARES
        }
        above = {name: is_above(lead, 0.0) for name, lead in leads.items()}
        out_of_order = {
            f"{format_ratio(mild)} above {format_ratio(severe)}": is_above(
                mean_over_runs(subtract_runs(sources[mild].shifted, sources[severe].shifted)),
                0.0,
            )
            for mild, severe in combinations(EVEN_SHARES, 2)
        }
        linear = mean_over_runs(_correlations(sources))
        return {
            # The control is the same for all severities.
            "exchange_is_silent": check_exchange({self.source.name: sources[EVEN_SHARES[0]]}),
            "subtle_shifts_show": StatementVerdict(
                all_hold(list(shows.values())), group_by_verdict(shows)
            ),
            "loss_is_silent_at_subtle": StatementVerdict(
                all_hold(list(silent.values())), group_by_verdict(silent)
            ),
            "loss_is_not_silent": StatementVerdict(
                any_holds(list(loss_shows.values())), group_by_verdict(loss_shows)
            ),
            "above_the_diagonal": StatementVerdict(
                all_hold(list(above.values())),
                "; ".join(f"{name}: {format_estimate(lead)}" for name, lead in leads.items()),
            ),
            "severity_is_not_told": StatementVerdict(
                any_holds(list(out_of_order.values())), group_by_verdict(out_of_order)
            ),
            "severity_is_told": StatementVerdict(
                is_above(linear, LINEAR_CORRELATION),
                f"correlation of severity and divergence {format_estimate(linear)}; above "
                f"{LINEAR_CORRELATION} it "
                "counts as linear",
            ),
        }

    def _divergences(
        self, audits: Mapping[str, AuditMeasurements]
    ) -> tuple[Mapping[float, Divergence], Mapping[float, Divergence]]:
        """Return the divergences of the source and of the loss, by severity that was run."""
        by_share = {even: audits[_key(even)] for even in EVEN_SHARES if _key(even) in audits}
        return (
            {even: one.divergence(self.source) for even, one in by_share.items()},
            {even: one.divergence(LOSS) for even, one in by_share.items()},
        )


def _key(even: float) -> str:
    return f"even_{100 * even:.0f}"


def _dot(name: str, is_control: bool, across: RunValues, up: RunValues) -> list[ScatterPoint]:
    x, y = mean_over_runs(across), mean_over_runs(up)
    return [] if x is None or y is None else [ScatterPoint(name, x.mean, y.mean, is_control)]


def _correlations(sources: Mapping[float, Divergence]) -> RunValues:
    """Return the correlation of severity and divergence by run, with the control at 0.5."""
    correlations = []
    first = sources[EVEN_SHARES[0]]
    for index, control in enumerate(first.control):
        run = [control, *(sources[even].shifted[index] for even in EVEN_SHARES)]
        values = [value for value in run if value is not None]
        varies = len(values) == len(run) and len(set(values)) > 1
        correlations.append(correlation([0.5, *EVEN_SHARES], values) if varies else None)
    return tuple(correlations)
