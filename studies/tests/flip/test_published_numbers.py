import pytest

from overheard.data.datasets.cifar10 import CLASS_NAMES
from overheard_studies.flip.attribute import read_attribute_rows
from overheard_studies.flip.attribute_tests import BinaryTask


def test_the_rows_of_table_two_are_as_published() -> None:
    rows = read_attribute_rows()
    assert [row.number for row in rows] == list(range(1, 13))
    assert [row.data for row in rows] == ["cifar10"] * 6 + ["cifar100"] * 6
    first, last = rows[0], rows[-1]
    assert first.attack_accuracy == pytest.approx(0.4688)
    assert first.accuracies[BinaryTask("frog", "cat")] == pytest.approx(0.8365)
    assert last.quadruple.primary == ("beetle", "chair")
    assert last.attack_accuracy == pytest.approx(0.6337)


def test_a_cifar10_task_in_several_rows_has_one_published_accuracy() -> None:
    accuracies: dict[BinaryTask, set[float]] = {}
    for row in read_attribute_rows():
        for task, value in row.accuracies.items():
            accuracies.setdefault(task, set()).add(value)
    tasks = [task for task in accuracies if task.primary in CLASS_NAMES]
    # 24 cells, ten of which are repeated in rows 3 to 6.
    assert len(tasks) == 14
    assert all(len(accuracies[task]) == 1 for task in tasks)


def test_attacks_are_multiples_of_a_1600th_within_rounding() -> None:
    for row in read_attribute_rows():
        nearest = round(row.attack_accuracy * 1600) / 1600
        assert abs(nearest - row.attack_accuracy) <= 0.00005 + 1e-9
