"""Steps are recorded once if they can be, and repeated.

There is no GPU, so a pretended graph notes what is recorded, and what is repeated.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

from overheard.learning.engines.recorded_steps import RecordedSteps


class Graph:
    """A graph that repeats what was recorded."""

    def __init__(self) -> None:
        self.recorded: list[str] = []

    def pool(self) -> int:
        return 0

    def replay(self) -> None:
        DONE.extend(f"repeated {one}" for one in self.recorded)


DONE = list[str]()
STREAMS = list[str]()
DEFAULT = 0
MODES = list[int | str]()
"""What operations that wait for the GPU did and do: nothing else, or fail."""


@contextmanager
def graph(into: Graph, *, pool: int | None, capture_error_mode: str) -> Iterator[None]:
    before = len(DONE)
    try:
        yield
    finally:
        into.recorded = DONE[before:]
        del DONE[before:]


@pytest.fixture(autouse=True)
def pretended_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    DONE.clear()
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "usual")
    monkeypatch.setattr(torch.cuda, "set_stream", STREAMS.append)
    STREAMS.clear()
    MODES[:] = [DEFAULT]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: MODES[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", MODES.append)


def step(shape: str) -> Callable[[], None]:
    return lambda: DONE.append(shape)


def test_the_second_step_of_a_shape_is_recorded_and_repeated() -> None:
    steps = RecordedSteps()
    for shape in ("a", "b", "a", "b", "a"):
        steps.take(shape, step(shape), is_worth_it=shape == "a")
    assert DONE == ["a", "b", "repeated a", "b", "repeated a"]


def test_steps_that_wait_for_the_gpu_are_not_recorded() -> None:
    """Their first one begins again, without the ban on waiting."""

    def waits() -> None:
        if MODES[-1] == "error":
            raise RuntimeError("called a synchronizing CUDA operation")
        DONE.append("waited")

    steps = RecordedSteps()
    for _ in range(3):
        steps.take("a", waits, is_worth_it=True)
    assert DONE == ["waited"] * 3
    assert MODES == [DEFAULT, "error", DEFAULT]


def test_steps_whose_recording_fails_are_taken_one_by_one() -> None:
    fails = iter([False, True, False, False])

    def step() -> None:
        DONE.append("began")
        if next(fails):
            raise RuntimeError("operation not permitted when stream is capturing")

    steps = RecordedSteps()
    for _ in range(3):
        steps.take("a", step, is_worth_it=True)
    assert DONE == ["began"] * 3
    assert STREAMS == ["usual"]


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), RuntimeError("wrong")])
def test_other_errors_are_raised(error: RuntimeError) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(RuntimeError, match=str(error)):
        RecordedSteps().take("a", fails, is_worth_it=True)
