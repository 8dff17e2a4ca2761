"""Four classes, and the four binary tasks of FLiP's attribute attack."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class BinaryTask:
    """One class against another, M_{A,B} in FLiP (arXiv 2410.19548), Section V-A.

    Args:
        primary: the class A, which the task is about.
        other: the class B, whose examples are all that is "not A".

    """

    primary: str
    other: str

    @property
    def key(self) -> str:
        """Name of the task in keys of values and in names of folders."""
        return f"{self.primary}-{self.other}"

    @property
    def classes(self) -> tuple[str, str]:
        """Return the classes by label: 0 = not A, 1 = A (equation (6))."""
        return (self.other, self.primary)


@final
@dataclass(frozen=True, slots=True)
class Quadruple:
    """Two primary classes, A1 and A2, and two other classes, B1 and B2.

    An attack learns to distinguish B1 from B2 in the federations of A1's tasks, and is tested
    on those of A2's tasks.

    Args:
        primary: A1 and A2.
        other: B1 and B2.

    """

    primary: tuple[str, str]
    other: tuple[str, str]

    @property
    def training_tasks(self) -> tuple[BinaryTask, BinaryTask]:
        """Return the tasks of A1 against B1 and against B2."""
        return self._tasks(self.primary[0])

    @property
    def test_tasks(self) -> tuple[BinaryTask, BinaryTask]:
        """Return the tasks of A2 against B1 and against B2."""
        return self._tasks(self.primary[1])

    @property
    def tasks(self) -> tuple[BinaryTask, ...]:
        """Return all four tasks, in the order of the paper's table."""
        return (*self.training_tasks, *self.test_tasks)

    def _tasks(self, primary: str) -> tuple[BinaryTask, BinaryTask]:
        first, second = self.other
        return BinaryTask(primary, first), BinaryTask(primary, second)
