"""The contract of an experiment whose page has figures."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportFigure
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.report.experiment_page import PaperStatement


@final
@dataclass(frozen=True, slots=True)
class Drawing:
    """The figures and statements on the page of an experiment.

    Args:
        plates: figures, each with a table of the same values.
        readings: statements of the paper, checked against the reproduced values.

    """

    plates: Sequence[ReportFigure] = ()
    readings: Sequence[PaperStatement] = ()


class Drawn(ABC):
    """An experiment whose page has figures."""

    @abstractmethod
    def drawing(self, runs: Runs, values: Sequence[Figure]) -> Drawing:
        """Draw the page's figures from the finished audits and the reproduced values."""
