"""Valid and invalid tasks."""

import pytest

from overheard.core.task import UTILITIES, Task


def test_counts_its_labels():
    assert Task((1, 8, 8), ("cat", "dog", "none")).classes == 3


@pytest.mark.parametrize("names", [(), ("only",)])
def test_refuses_fewer_than_two_classes(names: tuple[str, ...]):
    with pytest.raises(ValueError, match="2 classes or more"):
        Task((2,), names)


@pytest.mark.parametrize("shape", [(), (0,), (3, -1)])
def test_refuses_a_shape_without_numbers(shape: tuple[int, ...]):
    with pytest.raises(ValueError, match="1 or more"):
        Task(shape, ("a", "b"))


def test_a_task_without_classes_has_outputs_and_one_stratum():
    labels = Task((4,), ("warm", "loud", "late"), kind="multi_label")
    assert (labels.outputs, labels.classes, labels.has_classes) == (3, 1, False)
    number = Task((4,), ("age",), kind="regression")
    assert (number.outputs, number.classes, number.has_classes) == (1, 1, False)
    assert Task((4,), ("a", "b")).outputs == 2


@pytest.mark.parametrize("kind", ["multi_label", "regression"])
def test_refuses_a_task_without_outputs(kind: str):
    with pytest.raises(ValueError, match="a name for each output"):
        Task((2,), (), kind=kind)


def test_only_classes_have_an_accuracy():
    assert [kind for kind, name in UTILITIES.items() if name == "accuracy"] == [
        "classification"
    ]
