"""Four classes, and the tasks among which the attribute test of FLiP transfers."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class BinaryTask:
    """One class is told from another, M_{A,B} in FLiP (arXiv 2410.19548), Section V-A.

    Args:
        primary: the class A, which the task is about.
        other: the class B, all that is "not A" in the data.

    """

    primary: str
    other: str

    @property
    def key(self) -> str:
        """Its name in figures and folders."""
        return f"{self.primary}-{self.other}"

    @property
    def classes(self) -> tuple[str, str]:
        """By label: 0 = not A, 1 = A (equation (6))."""
        return (self.other, self.primary)


@final
@dataclass(frozen=True, slots=True)
class Quadruple:
    """Primary classes A1 and A2, and B1 and B2, of which one stands beside them.

    An attack learns from what the tasks of A1 leave to tell B1 from B2, and is tested on what
    those of A2 leave.

    Args:
        primary: A1 and A2.
        other: B1 and B2.

    """

    primary: tuple[str, str]
    other: tuple[str, str]

    @property
    def learned(self) -> tuple[BinaryTask, BinaryTask]:
        """A1 beside B1, and beside B2."""
        return self._tasks(self.primary[0])

    @property
    def tested(self) -> tuple[BinaryTask, BinaryTask]:
        """A2 beside B1, and beside B2."""
        return self._tasks(self.primary[1])

    @property
    def tasks(self) -> tuple[BinaryTask, ...]:
        """All four, as the paper's table has them."""
        return (*self.learned, *self.tested)

    def _tasks(self, primary: str) -> tuple[BinaryTask, BinaryTask]:
        first, second = self.other
        return BinaryTask(primary, first), BinaryTask(primary, second)
