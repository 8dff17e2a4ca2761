import pytest

from overheard.data.datasets.cifar10 import CLASS_NAMES
from overheard.papers.flip.printed import attribute_rows
from overheard.papers.flip.quadruple import BinaryTask


def test_the_rows_of_table_two_are_as_printed() -> None:
    rows = attribute_rows()
    assert [row.number for row in rows] == list(range(1, 13))
    assert [row.data for row in rows] == ["cifar10"] * 6 + ["cifar100"] * 6
    first, last = rows[0], rows[-1]
    assert first.attack == pytest.approx(0.4688)
    assert first.accuracies[BinaryTask("frog", "cat")] == pytest.approx(0.8365)
    assert last.quadruple.primary == ("beetle", "chair")
    assert last.attack == pytest.approx(0.6337)


def test_a_task_that_comes_back_in_cifar10_was_printed_with_one_accuracy() -> None:
    told: dict[BinaryTask, set[float]] = {}
    for row in attribute_rows():
        for task, value in row.accuracies.items():
            told.setdefault(task, set()).add(value)
    tasks = [task for task in told if task.primary in CLASS_NAMES]
    # 24 cells, of which the last pairs of rows 3 to 6 repeat ten.
    assert len(tasks) == 14
    assert all(len(told[task]) == 1 for task in tasks)


def test_attacks_are_multiples_of_a_1600th_within_rounding() -> None:
    for row in attribute_rows():
        nearest = round(row.attack * 1600) / 1600
        assert abs(nearest - row.attack) <= 0.00005 + 1e-9
