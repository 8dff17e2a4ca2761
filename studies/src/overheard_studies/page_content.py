"""The contract of an experiment whose page has figures."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportFigure
from overheard.report.experiment_page import PaperStatement
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns


@final
@dataclass(frozen=True, slots=True)
class PageContent:
    """The figures and statements on the page of an experiment.

    Args:
        figures: figures, each with a table of the same values.
        statements: statements of the paper, checked against the reproduced values.

    """

    figures: Sequence[ReportFigure] = ()
    statements: Sequence[PaperStatement] = ()


class IllustratedExperiment(ABC):
    """An experiment whose page has figures."""

    @abstractmethod
    def page_content(
        self, runs: ExperimentRuns, values: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw the page's figures from the finished audits and the reproduced values."""
