"""Steps that are recorded once as CUDA graphs and repeated."""

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

Step = Callable[[], None]

ROUNDING = 1e-3
"""By how much the change of a repeated step may differ from that of the step itself."""

EPSILONS = 8
"""By how many roundings a weight may differ besides, as a small change is rounded with it."""


_ENDS_OF_POOL = ("_cuda_endAllocateToPool", "_cuda_endAllocateCurrentStreamToPool")
"""The function of torch that takes no more memory from a pool: since torch 2.8, and before."""

_FAILED = list[torch.cuda.CUDAGraph]()
"""Graphs whose recording failed; torch may still refer to them."""


@final
@dataclass(frozen=True, slots=True)
class StepState:
    """What a step changes.

    Args:
        weights: the trained weights.
        others: all else that the next step reads, such as the state of the optimizer.

    """

    weights: Sequence[Tensor]
    others: Sequence[Tensor]


_REFUSED = set[str]()
"""Networks whose steps cannot be recorded, by `network_signature`."""


def network_signature(model: nn.Module) -> str:
    """Return what tells networks apart: their classes and settings."""
    return f"{type(model).__module__}.{type(model).__qualname__} {model}"


class CannotRecordError(Exception):
    """A step cannot be recorded; the message says why."""


@final
class RecordedSteps:
    """CUDA graphs of steps of several shapes.

    The first step of a shape is launched operation by operation: libraries then choose and
    build their kernels, which a graph cannot record. Where such a step waits for the GPU or
    copies from the CPU, as a graph cannot either, where recording it fails, or where repeating
    it gives another result, all steps of the network are launched so in this process.

    Args:
        network: the signature of the network.

    """

    def __init__(self, network: str) -> None:
        self._graphs = dict[Hashable, torch.cuda.CUDAGraph]()
        self._network = network

    def forget(self) -> None:
        """Drop all graphs, as those of memory that is given back."""
        self._graphs.clear()

    def shapes(self) -> list[Hashable]:
        """Return the shapes of the recorded steps."""
        return list(self._graphs)

    def take(self, shape: Hashable, step: Step, state: StepState, *, is_worth_it: bool) -> None:
        """Take a step.

        Args:
            shape: of the step; steps of one shape differ only by numbers in the GPU's memory.
            step: takes it, operation by operation.
            state: what it changes, in memory that stays.
            is_worth_it: whether a step of this shape shall be recorded if none was.

        """
        if shape in self._graphs:
            self._graphs[shape].replay()
        elif self._network in _REFUSED or not is_worth_it:
            step()
        else:
            try:
                self._record(shape, step, state)
            except CannotRecordError as error:
                self.forget()
                _REFUSED.add(self._network)
                warnings.warn(
                    "the steps of stacked clients are not recorded as CUDA graphs, and their "
                    f"operations are launched one by one instead, as {error}",
                    stacklevel=2,
                )

    def _record(self, shape: Hashable, step: Step, state: StepState) -> None:
        """Take a step, and record it.

        Raises:
            CannotRecordError: if it cannot be recorded; it was taken then, too.

        """
        before = _copies(state)
        is_known = self._take_first(step)
        after = _copies(state)
        if not is_known:
            raise CannotRecordError("one of them waits for the GPU")
        # All share memory, as a step ends before the next begins and leaves nothing in it.
        memory = next((one.pool() for one in self._graphs.values()), None)
        graph = _graph_of(step, memory)
        _write(state, before)
        graph.replay()
        are_alike = are_equal(before.weights, after.weights, state.weights)
        if not (are_alike and are_equal(before.others, after.others, state.others)):
            _write(state, before)
            step()
            raise CannotRecordError("a repeated one gave another result")
        self._graphs[shape] = graph

    def _take_first(self, step: Step) -> bool:
        """Take a step; return whether it did so without waiting for the GPU."""
        try:
            with without_waiting():
                step()
        except RuntimeError as error:
            if "synchroniz" not in str(error):
                raise
        else:
            return True
        step()  # from its beginning: weights change at its end
        return False


def _graph_of(step: Step, memory: "torch.cuda._POOL_HANDLE | None") -> torch.cuda.CUDAGraph:
    """Record a step, without taking it.

    Raises:
        CannotRecordError: if torch cannot.

    """
    graph = torch.cuda.CUDAGraph()
    stream, pool = torch.cuda.current_stream(), memory or torch.cuda.graph_pool_handle()
    try:
        # Other threads may use the GPU meanwhile.
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            step()
    except RuntimeError as error:
        torch.cuda.set_stream(stream)  # torch does not, if a recording has failed
        end_failed_recording(graph, pool)
        # The end of a recording that Ctrl-C has stopped fails, too.
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        if isinstance(error, torch.OutOfMemoryError):
            raise
        reason = str(error).partition("\n")[0]
        raise CannotRecordError(f"recording one failed: {reason}") from error
    return graph


def end_failed_recording(
    graph: torch.cuda.CUDAGraph, pool: "torch.cuda._POOL_HANDLE | None"
) -> None:
    """End the recording of a graph after an error, so that the GPU can be used as before.

    Its memory is free then.
    """
    with suppress(RuntimeError):
        if not _has_ended(graph):
            graph.capture_end()
        graph.reset()
        return
    # torch < 2.12 then still takes memory from the graph's pool, and asks the graph when.
    _FAILED.append(graph)
    if pool is None:
        return
    found = (getattr(torch._C, name, None) for name in _ENDS_OF_POOL)
    end = next((one for one in found if one is not None), None)
    release = getattr(torch._C, "_cuda_releasePool", None)
    for give_back in (end, release):
        if give_back is not None:
            with suppress(RuntimeError):
                give_back(torch.cuda.current_device(), pool)


def _has_ended(graph: torch.cuda.CUDAGraph) -> bool:
    """Return whether torch has ended the recording, as it does after a lack of memory."""
    try:
        graph.pool()
    except RuntimeError:
        return False
    return True


@contextmanager
def without_waiting() -> Iterator[None]:
    """Let operations fail that wait for the GPU."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(action="ignore"):  # torch says that it is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _copies(state: StepState) -> StepState:
    return StepState(
        [one.clone() for one in state.weights], [one.clone() for one in state.others]
    )


def _write(state: StepState, numbers: StepState) -> None:
    """Write these numbers into the state, in place."""
    for one, other in zip(state.weights, numbers.weights, strict=True):
        one.copy_(other)
    for one, other in zip(state.others, numbers.others, strict=True):
        one.copy_(other)


def are_equal(
    before: Sequence[Tensor], after: Sequence[Tensor], repeated: Sequence[Tensor]
) -> bool:
    """Return whether two changes are equal: of integers exactly, else up to rounding.

    Where training diverges, numbers that are not finite count as equal to any.
    """
    for old, new, other in zip(before, after, repeated, strict=True):
        if not new.is_floating_point():
            if not torch.equal(new, other):
                return False
            continue
        wrong = torch.where(new.isfinite(), new - other, 0).norm()
        changed = (new - old).nan_to_num(0.0, 0.0, 0.0).norm()
        size = new.nan_to_num(0.0, 0.0, 0.0).norm()
        allowed = ROUNDING * changed + EPSILONS * torch.finfo(new.dtype).eps * size
        if not bool(wrong <= allowed):
            return False
    return True
