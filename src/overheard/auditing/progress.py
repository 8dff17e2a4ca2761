"""The progress of an audit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final


@dataclass(frozen=True, slots=True)
class Step:
    """The progress of an audit: `done` of `total` work items, currently at `what`."""

    what: str
    done: int
    total: int


OnStep = Callable[[Step], None]


@final
class Progress:
    """Counts finished work items and reports each change to a callback.

    Args:
        on_step: the callback; None = no reports.

    """

    def __init__(self, on_step: OnStep | None) -> None:
        self._base = 0
        self._done = 0
        self._on_step = on_step
        self._total = 0

    def expect(self, pieces: int) -> None:
        """Set the total number of work items."""
        self._total = pieces

    def tick(self, what: str) -> None:
        """Count one more work item as done."""
        self._tell(what, self._done + 1)
        self._base = self._done

    def rounds(self, what: str, done: int) -> None:
        """Report finished rounds of the runs that started after the last `tick`."""
        self._tell(what, self._base + done)

    def beside(self, what: str, work: str, done: int, total: int) -> None:
        """Report progress within a work item; the count of items does not change."""
        self._tell(f"{what}: {work} {done} of {total}", self._done)

    def _tell(self, what: str, done: int) -> None:
        self._done = done
        if self._on_step is not None:
            self._on_step(Step(what, done, self._total))
