"""How far an audit has come."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final


@dataclass(frozen=True, slots=True)
class Step:
    """How far an audit has come: `done` of `total` pieces of work, now at `what`."""

    what: str
    done: int
    total: int


OnStep = Callable[[Step], None]


@final
class Progress:
    """Counts pieces of work, and tells a listener when some are done.

    Args:
        on_step: the listener; None = nobody listens.

    """

    def __init__(self, on_step: OnStep | None) -> None:
        self._base = 0
        self._done = 0
        self._on_step = on_step
        self._total = 0

    def expect(self, pieces: int) -> None:
        """Say how many pieces of work there are in all."""
        self._total = pieces

    def tick(self, what: str) -> None:
        """Count one more piece of work as done."""
        self._tell(what, self._done + 1)
        self._base = self._done

    def rounds(self, what: str, done: int) -> None:
        """Count rounds as done of the runs that started after the last tick."""
        self._tell(what, self._base + done)

    def beside(self, what: str, work: str, done: int, total: int) -> None:
        """Tell how much is done of the work within a piece; the count of pieces stays."""
        self._tell(f"{what}: {work} {done} of {total}", self._done)

    def _tell(self, what: str, done: int) -> None:
        self._done = done
        if self._on_step is not None:
            self._on_step(Step(what, done, self._total))
