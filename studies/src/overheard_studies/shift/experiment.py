"""The contract of the shift paper's experiments: audits, and the measures in each."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.auditing.plan_code import describe_origin
from overheard.drawing.figures import ReportFigure
from overheard.plans.plan import Plan
from overheard.report.experiment_page import Holds, PaperStatement
from overheard_studies.experiment import Experiment
from overheard_studies.page_content import IllustratedExperiment, PageContent
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.shift.cached_series import load_series, save_series
from overheard_studies.shift.divergence import (
    Divergence,
    all_hold,
    is_above,
    measure_divergence,
    negate,
)
from overheard_studies.shift.evidence import group_by_verdict
from overheard_studies.shift.measure import LeakageMeasure
from overheard_studies.shift.measured_series import MeasuredSeries, measure_series
from overheard_studies.shift.published_statements import read_statements
from overheard_studies.shift.scenarios import ShiftScenario, ShiftSize
from overheard_studies.shift.shift_values import (
    make_auc_values,
    make_divergence_values,
    make_statement_values,
)


@final
@dataclass(frozen=True, slots=True)
class AuditMeasurements:
    """The measurements in one audit.

    Args:
        measured: every measure by round.
        values: values of the measures.

    """

    measured: tuple[MeasuredSeries, ...]
    values: tuple[ReproducedValue, ...]

    def series_of(self, measure: LeakageMeasure) -> MeasuredSeries:
        """Return one of the measures by round."""
        return next(one for one in self.measured if one.measure == measure)

    def select_runs(self, positions: Sequence[int]) -> "AuditMeasurements":
        """Return the measures in some of the runs, by their positions from 0 on."""
        return replace(
            self, measured=tuple(one.select_runs(positions) for one in self.measured)
        )

    def divergence(self, measure: LeakageMeasure) -> Divergence:
        """Return the divergence of one of the measures from its trend."""
        return measure_divergence(self.series_of(measure))

    def values_of(self, measure: LeakageMeasure) -> tuple[ReproducedValue, ...]:
        """Return the values of one measure."""
        return tuple(one for one in self.values if f"; {measure.name}: " in one.setting)


@final
@dataclass(frozen=True, slots=True)
class StatementVerdict:
    """Whether a statement of the paper holds, and the evidence."""

    holds: Holds
    evidence: str


def check_exchange(divergences: Mapping[str, Divergence]) -> StatementVerdict:
    """Check that exchanging examples without a shift keeps measures on their trends.

    Args:
        divergences: divergence of each measure, by its name in the evidence.

    """
    breaks = {
        name: is_above(one.control_over_baseline, 0.0) for name, one in divergences.items()
    }
    return StatementVerdict(
        all_hold([negate(one) for one in breaks.values()]),
        "larger divergence from the trend when examples are exchanged than before: "
        f"{group_by_verdict(breaks)}",
    )


class ShiftExperiment(Experiment, IllustratedExperiment):
    """A figure of the shift paper.

    Subclasses are final frozen dataclasses.
    """

    scenario: ShiftScenario
    """The data set and federation."""

    @abstractmethod
    def measures(self) -> tuple[LeakageMeasure, ...]:
        """Return the measures."""

    @abstractmethod
    def size(self, *, quick: bool) -> ShiftSize:
        """Return the size of the run."""

    @abstractmethod
    def build_plans(self, size: ShiftSize) -> Mapping[str, Plan]:
        """Return the plans by sub-folder."""

    @abstractmethod
    def draw_figures(self, audits: Mapping[str, AuditMeasurements]) -> tuple[ReportFigure, ...]:
        """Draw the figures from the measurements of each audit that was run."""

    @abstractmethod
    def check_statements(
        self, audits: Mapping[str, AuditMeasurements]
    ) -> Mapping[str, StatementVerdict]:
        """Check each of the paper's statements, by its key.

        Args:
            audits: measurements of all audits, in runs of the same seeds.

        """

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return the plans of one size."""
        return self.build_plans(self.size(quick=quick))

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return divergences with the control's, the AUC, and whether the statements hold.

        The statements compare audits, so they are left out if an audit is missing, and use the
        runs of those seeds that all audits have.
        """
        audits = self._measure_audits(runs)
        numbers = tuple(value for one in audits.values() for value in one.values)
        return (*numbers, *make_statement_values(self._statements(runs, audits)))

    def page_content(
        self, runs: ExperimentRuns, values: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw the figures, and check the statements."""
        audits = self._measure_audits(runs)
        return PageContent(self.draw_figures(audits), self._statements(runs, audits))

    def _measure_audits(self, runs: ExperimentRuns) -> Mapping[str, AuditMeasurements]:
        full = self.plans(quick=False)
        return {
            name: self._measure_audit(
                runs, name, describe_setting(self.scenario.name, plan, full[name])
            )
            for name, plan in runs.plans.items()
            if name in runs.audits
        }

    def _measure_audit(
        self, runs: ExperimentRuns, name: str, context: str
    ) -> AuditMeasurements:
        is_only_audit = len(self.plans(quick=False)) == 1
        measures, prefix = self.measures(), "" if is_only_audit else f"{name}_"
        origin = describe_origin((runs.plans[name],), measure_series.__module__)
        followed = load_series(runs.folder / name, measures, origin)
        if followed is None:
            followed = measure_series(runs, name, measures)
            save_series(followed, runs.folder / name, origin)
        values = [
            value
            for one in followed
            for value in make_divergence_values(
                prefix, context, one.measure, measure_divergence(one)
            )
        ]
        auc_values = make_auc_values(
            prefix, context, runs.audits[name], runs.plans[name], measures
        )
        return AuditMeasurements(followed, (*values, *auc_values))

    def _statements(
        self, runs: ExperimentRuns, audits: Mapping[str, AuditMeasurements]
    ) -> tuple[PaperStatement, ...]:
        """Check the statements in the runs that all audits have; () if there are none."""
        # The audits of both sizes have the same names.
        if audits.keys() != self.plans(quick=False).keys():
            return ()
        shared = runs.common_seeds(audits.keys())
        if not shared:
            return ()
        verdicts = self.check_statements(
            {
                name: one.select_runs([runs.plans[name].seeds.index(seed) for seed in shared])
                for name, one in audits.items()
            }
        )
        return tuple(
            PaperStatement(key, says, verdicts[key].holds, verdicts[key].evidence)
            for key, says in read_statements(self.name).items()
        )
