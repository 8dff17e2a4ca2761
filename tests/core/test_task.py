"""Valid and invalid tasks."""

import pytest

from overheard.core.task import Task


@pytest.mark.parametrize("names", [(), ("only",)])
def test_refuses_fewer_than_two_classes(names: tuple[str, ...]):
    with pytest.raises(ValueError, match="2 classes or more"):
        Task((2,), names)


@pytest.mark.parametrize("shape", [(), (0,), (3, -1)])
def test_refuses_a_shape_without_numbers(shape: tuple[int, ...]):
    with pytest.raises(ValueError, match="1 or more"):
        Task(shape, ("a", "b"))


def test_refuses_more_outputs_than_any_model_has():
    with pytest.raises(ValueError, match="at most 262144 outputs, got 262145"):
        Task((2,), ("a",) * (2**18 + 1))


@pytest.mark.parametrize(
    ("shape", "message"),
    [((1,) * 9, "at most 8 axes, got 9"), ((2**31, 2), "at most 2147483648 numbers")],
)
def test_refuses_a_shape_that_no_input_has(shape: tuple[int, ...], message: str):
    with pytest.raises(ValueError, match=message):
        Task(shape, ("a", "b"))


@pytest.mark.parametrize("kind", ["multi_label", "regression"])
def test_refuses_a_task_without_outputs(kind: str):
    with pytest.raises(ValueError, match="a name for each output"):
        Task((2,), (), kind=kind)
