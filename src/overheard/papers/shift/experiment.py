"""The contract of the shift paper's experiments: audits, and the measures in each."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportFigure
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.papers.setting import setting
from overheard.papers.shift.divergence import (
    Divergence,
    all_hold,
    divergence,
    is_above,
    opposite,
)
from overheard.papers.shift.figures import auc_figures, divergence_figures, reading_figures
from overheard.papers.shift.followed import Followed, follow
from overheard.papers.shift.kept_series import load, save
from overheard.papers.shift.measure import LeakageMeasure
from overheard.papers.shift.printed import sentences
from overheard.papers.shift.words import by_answer
from overheard.papers.shift.world import ShiftScenario, ShiftSize
from overheard.plans.plan import Plan
from overheard.report.experiment_page import Holds, PaperStatement


@final
@dataclass(frozen=True, slots=True)
class Followings:
    """The measurements in one audit.

    Args:
        followed: every measure by round.
        figures: values of the measures.

    """

    followed: tuple[Followed, ...]
    figures: tuple[Figure, ...]

    def of(self, measure: LeakageMeasure) -> Followed:
        """Return one of the measures by round."""
        return next(one for one in self.followed if one.measure == measure)

    def divergence(self, measure: LeakageMeasure) -> Divergence:
        """Return the divergence of one of the measures from its trend."""
        return divergence(self.of(measure))

    def numbers(self, measure: LeakageMeasure) -> tuple[Figure, ...]:
        """Return the values of one measure."""
        return tuple(one for one in self.figures if f"; {measure.name}: " in one.setting)


@final
@dataclass(frozen=True, slots=True)
class ShiftAnswer:
    """Whether a statement of the paper holds, and the evidence."""

    holds: Holds
    because: str


def exchange(divergences: Mapping[str, Divergence]) -> ShiftAnswer:
    """Check that exchanging examples without a shift keeps measures on their trends.

    Args:
        divergences: divergence of each measure, by its name in the evidence.

    """
    breaks = {name: is_above(one.over_calm, 0.0) for name, one in divergences.items()}
    return ShiftAnswer(
        all_hold([opposite(one) for one in breaks.values()]),
        "larger divergence from the trend when examples are exchanged than before: "
        f"{by_answer(breaks)}",
    )


class ShiftExperiment(Experiment, Drawn):
    """A figure of the shift paper.

    Subclasses are final frozen dataclasses.
    """

    world: ShiftScenario
    """The data set and federation."""

    @abstractmethod
    def measures(self) -> tuple[LeakageMeasure, ...]:
        """Return the measures."""

    @abstractmethod
    def size(self, *, quick: bool) -> ShiftSize:
        """Return the size of the run."""

    @abstractmethod
    def audits(self, size: ShiftSize) -> Mapping[str, Plan]:
        """Return the plans by sub-folder."""

    @abstractmethod
    def plates(self, audits: Mapping[str, Followings]) -> tuple[ReportFigure, ...]:
        """Draw the figures from the measurements of each audit."""

    @abstractmethod
    def answers(self, audits: Mapping[str, Followings]) -> Mapping[str, ShiftAnswer]:
        """Check each of the paper's statements, by its key."""

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return the plans of one size."""
        return self.audits(self.size(quick=quick))

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return divergences with the control's, the AUC, and whether the statements hold."""
        audits = self._measure_audits(runs)
        numbers = tuple(value for one in audits.values() for value in one.figures)
        return (*numbers, *reading_figures(self._statements(audits)))

    def drawing(self, runs: Runs, values: Sequence[Figure]) -> Drawing:
        """Draw the figures, and check the statements."""
        audits = self._measure_audits(runs)
        return Drawing(self.plates(audits), self._statements(audits))

    def _measure_audits(self, runs: Runs) -> Mapping[str, Followings]:
        full = self.plans(quick=False)
        return {
            name: self._measure_audit(runs, name, setting(self.world.name, plan, full[name]))
            for name, plan in runs.plans.items()
            if name in runs.audits
        }

    def _measure_audit(self, runs: Runs, name: str, context: str) -> Followings:
        measures, prefix = self.measures(), f"{name}_" if len(runs.plans) > 1 else ""
        # The cache belongs to this audit, as its folder belongs to one plan.
        followed = load(runs.folder / name, measures)
        if followed is None:
            followed = follow(runs, name, measures)
            save(followed, runs.folder / name)
        values = [
            value
            for one in followed
            for value in divergence_figures(prefix, context, one.measure, divergence(one))
        ]
        auc_values = auc_figures(prefix, context, runs.audits[name], runs.plans[name], measures)
        return Followings(followed, (*values, *auc_values))

    def _statements(self, audits: Mapping[str, Followings]) -> tuple[PaperStatement, ...]:
        verdicts = self.answers(audits)
        return tuple(
            PaperStatement(key, says, verdicts[key].holds, verdicts[key].because)
            for key, says in sentences(self.name).items()
        )
