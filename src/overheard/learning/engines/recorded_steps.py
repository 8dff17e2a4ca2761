"""Steps that are recorded once as CUDA graphs and repeated."""

import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import final

import torch


@final
class RecordedSteps:
    """CUDA graphs of steps of several shapes.

    The first step of a shape is launched operation by operation: libraries then choose and
    build their kernels, which a graph cannot record. Where such a step waits for the GPU or
    copies from the CPU, as a graph cannot either, no step is recorded.
    """

    def __init__(self) -> None:
        self._graphs = dict[Hashable, torch.cuda.CUDAGraph]()
        self._seen = set[Hashable]()
        self._can_record = True

    def take(self, shape: Hashable, step: Callable[[], None], is_worth_it: bool) -> None:
        """Take a step.

        Args:
            shape: of the step; steps of one shape differ only by numbers in the GPU's memory.
            step: takes it, operation by operation.
            is_worth_it: whether a step of a shape that was taken before shall be recorded.

        """
        if shape in self._graphs:
            self._graphs[shape].replay()
        elif not self._can_record:
            step()
        elif shape not in self._seen:
            self._seen.add(shape)
            self._take_first(step)
        elif not is_worth_it:
            step()
        else:
            self._record(shape, step)
            self.take(shape, step, is_worth_it)

    def _take_first(self, step: Callable[[], None]) -> None:
        """Take a step, and find out whether a graph can record it."""
        try:
            with _without_waiting():
                step()
        except RuntimeError as error:
            if "synchroniz" not in str(error):
                raise
            self._can_record = False
        if not self._can_record:
            step()  # from its beginning: weights change at its end

    def _record(self, shape: Hashable, step: Callable[[], None]) -> None:
        """Record a step without taking it."""
        graph = torch.cuda.CUDAGraph()
        # All share memory, as a step ends before the next begins and leaves nothing in it.
        memory = next((one.pool() for one in self._graphs.values()), None)
        stream = torch.cuda.current_stream()
        try:
            # Other threads may use the GPU meanwhile.
            with torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"):
                step()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            torch.cuda.set_stream(stream)  # torch does not, if a recording has failed
            self._can_record = False
        else:
            self._graphs[shape] = graph


@contextmanager
def _without_waiting() -> Iterator[None]:
    """Let operations fail that wait for the GPU."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(action="ignore"):  # torch says that it is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)
