"""Valid and invalid tasks."""

import pytest

from overheard.core.task import Task


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
