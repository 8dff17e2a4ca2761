"""The contract of the shift paper's experiments: audits, and measures followed through each."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.plates import Plate
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
from overheard.report.experiment_page import Holds, Reading


@final
@dataclass(frozen=True, slots=True)
class Followings:
    """What came of one audit.

    Args:
        followed: every measure by round.
        figures: the numbers.

    """

    followed: tuple[Followed, ...]
    figures: tuple[Figure, ...]

    def of(self, measure: LeakageMeasure) -> Followed:
        """One of the measures by round."""
        return next(one for one in self.followed if one.measure == measure)

    def divergence(self, measure: LeakageMeasure) -> Divergence:
        """How far one of the measures is off its trend."""
        return divergence(self.of(measure))

    def numbers(self, measure: LeakageMeasure) -> tuple[Figure, ...]:
        """The numbers of one measure."""
        return tuple(one for one in self.figures if f"; {measure.name}: " in one.setting)


@final
@dataclass(frozen=True, slots=True)
class ShiftAnswer:
    """Whether a sentence holds, and by which numbers."""

    holds: Holds
    because: str


def exchange(told: Mapping[str, Divergence]) -> ShiftAnswer:
    """Whether an exchange for fresh examples of the same kind leaves measures on their trends.

    Args:
        told: of each measure, by its name in the answer.

    """
    breaks = {name: is_above(one.over_calm, 0.0) for name, one in told.items()}
    return ShiftAnswer(
        all_hold([opposite(one) for one in breaks.values()]),
        f"farther off its trend when examples are exchanged than before: {by_answer(breaks)}",
    )


class ShiftExperiment(Experiment, Drawn):
    """A figure of the shift paper.

    A concrete one is a final frozen dataclass.
    """

    world: ShiftScenario
    """Whose data."""

    @abstractmethod
    def measures(self) -> tuple[LeakageMeasure, ...]:
        """What is followed."""

    @abstractmethod
    def size(self, *, quick: bool) -> ShiftSize:
        """How much is run."""

    @abstractmethod
    def audits(self, size: ShiftSize) -> Mapping[str, Plan]:
        """The audits, by sub-folder."""

    @abstractmethod
    def plates(self, told: Mapping[str, Followings]) -> tuple[Plate, ...]:
        """The drawings, of what came of each audit."""

    @abstractmethod
    def answers(self, told: Mapping[str, Followings]) -> Mapping[str, ShiftAnswer]:
        """Whether each of the paper's sentences holds, by its key."""

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """The audits of one size."""
        return self.audits(self.size(quick=quick))

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Divergences beside the control's, the AUC, and whether the sentences hold."""
        told = self._told(runs)
        numbers = tuple(figure for one in told.values() for figure in one.figures)
        return (*numbers, *reading_figures(self._readings(told)))

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """The drawings, and whether the sentences hold."""
        told = self._told(runs)
        return Drawing(self.plates(told), self._readings(told))

    def _told(self, runs: Runs) -> Mapping[str, Followings]:
        full = self.plans(quick=False)
        return {
            name: self._of_audit(runs, name, setting(self.world.name, plan, full[name]))
            for name, plan in runs.plans.items()
            if name in runs.audits
        }

    def _of_audit(self, runs: Runs, name: str, where: str) -> Followings:
        measures, prefix = self.measures(), f"{name}_" if len(runs.plans) > 1 else ""
        # What is kept is the audit's own: its folder is no other plan's.
        followed = load(runs.folder / name, measures)
        if followed is None:
            followed = follow(runs, name, measures)
            save(followed, runs.folder / name)
        figures = [
            figure
            for one in followed
            for figure in divergence_figures(prefix, where, one.measure, divergence(one))
        ]
        ranked = auc_figures(prefix, where, runs.audits[name], runs.plans[name], measures)
        return Followings(followed, (*figures, *ranked))

    def _readings(self, told: Mapping[str, Followings]) -> tuple[Reading, ...]:
        answers = self.answers(told)
        return tuple(
            Reading(key, says, answers[key].holds, answers[key].because)
            for key, says in sentences(self.name).items()
        )
