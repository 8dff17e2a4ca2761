"""The progress of an audit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """The progress of an audit: `done` of `total` work items, currently at `description`."""

    description: str
    done: int
    total: int


OnStep = Callable[[ProgressStep], None]


@final
class Progress:
    """Counts finished work items and reports each change to a callback.

    Args:
        on_step: the callback; None = no reports.
        total: the total number of work items.

    """

    def __init__(self, on_step: OnStep | None, total: int = 0) -> None:
        self._done_before_rounds = 0
        self._done = 0
        self._on_step = on_step
        self._total = total

    def advance(self, what: str) -> None:
        """Count one more work item as done."""
        self._report(what, self._done + 1)
        self._done_before_rounds = self._done

    def report_rounds(self, what: str, done: int) -> None:
        """Report finished rounds of the runs in training, beside what was counted before."""
        self._report(what, self._done_before_rounds + done)

    def keep_rounds(self) -> None:
        """Count the reported rounds as done, before other runs report theirs."""
        self._done_before_rounds = self._done

    def report_subtask(self, what: str, work: str, done: int, total: int) -> None:
        """Report progress within a work item; the count of items does not change."""
        self._report(f"{what}: {work} {done} of {total}", self._done)

    def _report(self, what: str, done: int) -> None:
        self._done = done
        if self._on_step is not None:
            self._on_step(ProgressStep(what, done, self._total))
