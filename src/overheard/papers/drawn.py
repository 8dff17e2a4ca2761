"""The contract of an experiment that is drawn as its paper draws it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.plates import Plate
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.report.experiment_page import Reading


@final
@dataclass(frozen=True, slots=True)
class Drawing:
    """What the page of an experiment shows beside its figures.

    Args:
        plates: drawings, each with a table of the same numbers.
        readings: what the paper says in words.

    """

    plates: Sequence[Plate] = ()
    readings: Sequence[Reading] = ()


class Drawn(ABC):
    """An experiment whose page has drawings."""

    @abstractmethod
    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """The drawings, read off the audits that were run and off the figures of these."""
