"""Steps are recorded once if they can be, compared with the step itself, and repeated.

There is no GPU, so a pretended graph takes the step again, or another one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import pytest
import torch

from overheard.learning.engines import recorded_steps
from overheard.learning.engines.recorded_steps import RecordedSteps, StepState
from tests.learning.pretended_graph import PretendedGraph

DEFAULT = 0
MODES = list[int | str]()
"""What operations that wait for the GPU did and do: nothing else, or fail."""


@pytest.fixture(autouse=True)
def pretended_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_steps, "_graph_of", lambda step, memory: PretendedGraph(step))
    monkeypatch.setattr(recorded_steps, "_REFUSED", set())
    MODES[:] = [DEFAULT]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: MODES[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", MODES.append)


class Descent:
    """A weight that falls by the number of the step."""

    def __init__(self) -> None:
        self.weight, self.number = torch.zeros(1, dtype=torch.float64), torch.ones(1)
        self.state = StepState([self.weight], [self.number])

    def step(self) -> None:
        self.weight -= self.number
        self.number += 1


def take_three(steps: RecordedSteps, step: Callable[[], None], descent: Descent) -> None:
    for _ in range(3):
        steps.take("a", step, descent.state, is_worth_it=True)


def test_steps_of_a_shape_that_is_worth_it_are_repeated() -> None:
    descent, steps = Descent(), RecordedSteps("network")
    for turn in range(6):
        shape = "a" if turn % 2 else "b"
        steps.take(shape, descent.step, descent.state, is_worth_it=shape == "a")
    assert descent.weight.item() == -21
    assert steps.shapes() == ["a"]
    steps.forget()
    assert steps.shapes() == []


@pytest.mark.parametrize("fall", [1.01, torch.nan, torch.inf])
def test_a_repeated_step_with_another_result_is_not_used(
    fall: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    descent, steps = Descent(), RecordedSteps("network")
    wrong = PretendedGraph(lambda: descent.weight.sub_(fall))
    monkeypatch.setattr(recorded_steps, "_graph_of", lambda step, memory: wrong)
    with pytest.warns(UserWarning, match="another result") as told:
        take_three(steps, descent.step, descent)
    assert len(told) == 1
    assert descent.weight.item() == -6


def test_a_repeated_step_that_leaves_another_state_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    descent, steps = Descent(), RecordedSteps("network")
    wrong = PretendedGraph(lambda: descent.weight.sub_(descent.number))
    monkeypatch.setattr(recorded_steps, "_graph_of", lambda step, memory: wrong)
    with pytest.warns(UserWarning, match="another result"):
        take_three(steps, descent.step, descent)
    assert descent.weight.item() == -6


def test_steps_of_a_network_that_was_refused_are_not_recorded_again() -> None:
    descent = Descent()
    recorded_steps._REFUSED.add("network")
    take_three(steps := RecordedSteps("network"), descent.step, descent)
    assert descent.weight.item() == -6
    assert steps.shapes() == []
    take_three(other := RecordedSteps("other"), descent.step, descent)
    assert other.shapes() == ["a"]


def test_ctrl_c_ends_a_recording_and_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 3))
    monkeypatch.setattr(torch.cuda, "graph", _ending)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "usual")
    monkeypatch.setattr(torch.cuda, "set_stream", lambda stream: None)
    monkeypatch.setattr(recorded_steps, "end_failed_recording", lambda graph, pool: None)

    def stopped() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recorded_steps._graph_of(stopped, None)


@contextmanager
def _ending(graph: object, **settings: object) -> Iterator[None]:
    """End a recording as torch does, which fails after an error within it."""
    try:
        yield
    finally:
        raise RuntimeError("operation failed due to a previous error during capture")


def test_a_step_that_waits_for_the_gpu_is_taken_without_the_ban() -> None:
    descent, steps = Descent(), RecordedSteps("network")

    def waits() -> None:
        if MODES[-1] == "error":
            raise RuntimeError("called a synchronizing CUDA operation")
        descent.step()

    with pytest.warns(UserWarning, match="waits for the GPU"):
        take_three(steps, waits, descent)
    assert descent.weight.item() == -6
    assert MODES == [DEFAULT, "error", DEFAULT]


@contextmanager
def _failing(graph: object, **settings: object) -> Iterator[None]:
    yield
    raise RuntimeError("operation not permitted\nwhen stream is capturing")


def test_steps_whose_recording_fails_are_launched_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(recorded_steps, "_REFUSED", set())
    streams = list[str]()
    monkeypatch.setattr(recorded_steps, "without_waiting", nullcontext)
    ended = list[object]()
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 3))
    monkeypatch.setattr(
        recorded_steps, "end_failed_recording", lambda graph, pool: ended.append(pool)
    )
    monkeypatch.setattr(torch.cuda, "graph", _failing)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "usual")
    monkeypatch.setattr(torch.cuda, "set_stream", streams.append)
    descent, steps = Descent(), RecordedSteps("network")
    taken = list[int]()

    def step() -> None:
        taken.append(1)
        if len(taken) != 2:  # the second one is recorded, not taken
            descent.step()

    with pytest.warns(UserWarning, match="operation not permitted$"):
        take_three(steps, step, descent)
    assert descent.weight.item() == -6
    assert streams == ["usual"]
    assert ended == [(0, 3)]


class FailedGraph:
    """A graph as torch leaves it after an error while it was recorded.

    Args:
        state: of its recording: "ended" if torch has ended it, "open" if it can be ended, and
            "broken" if it cannot.

    """

    def __init__(self, state: str) -> None:
        self.state, self.has_memory = state, True

    def pool(self) -> tuple[int, int]:
        if self.state != "ended":
            raise RuntimeError("called without a preceding successful capture")
        return (0, 3)

    def capture_end(self) -> None:
        if self.state != "open":
            raise RuntimeError("operation failed due to a previous error during capture")
        self.state = "ended"

    def reset(self) -> None:
        assert self.state == "ended"
        self.has_memory = False


@pytest.mark.parametrize("state", ["ended", "open"])
def test_a_recording_that_lacks_memory_gives_its_own_back(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_steps, "_FAILED", failed := [])
    recorded_steps.end_failed_recording(graph := FailedGraph(state), (0, 3))
    assert not graph.has_memory
    assert failed == []


@pytest.mark.parametrize("older", [False, True])
def test_a_failed_recording_takes_no_more_memory_from_its_pool(
    older: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer_name, older_name = recorded_steps._ENDS_OF_POOL
    ended, released = list[object](), list[object]()
    monkeypatch.delattr(torch._C, newer_name, raising=False)
    monkeypatch.setattr(
        torch._C, "_cuda_releasePool", lambda *given: released.append(given), raising=False
    )
    name = older_name if older else newer_name
    monkeypatch.setattr(torch._C, name, lambda *given: ended.append(given), raising=False)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(recorded_steps, "_FAILED", [])
    recorded_steps.end_failed_recording(FailedGraph("broken"), (0, 3))
    assert ended == released == [(1, (0, 3))]
    recorded_steps.end_failed_recording(FailedGraph("broken"), None)
    assert len(ended) == len(released) == 1
    assert len(recorded_steps._FAILED) == 2


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), RuntimeError("wrong")])
def test_other_errors_are_raised(error: RuntimeError) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(RuntimeError, match=str(error)):
        RecordedSteps("network").take("a", fails, Descent().state, is_worth_it=True)


def test_weights_that_diverge_count_as_equal() -> None:
    descent, steps = Descent(), RecordedSteps("network")
    descent.number.fill_(torch.inf)
    take_three(steps, descent.step, descent)
    assert steps.shapes() == ["a"]
