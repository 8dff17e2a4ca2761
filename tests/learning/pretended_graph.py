"""A CUDA graph without a GPU: what a step computes is noted, and repeated in the same memory.

As in a real graph, numbers of Python are those of the recording, and each repetition reads and
writes the tensors of the recording. Unlike there, the first repetition is the recording.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from overheard.learning.engines import lanes, recorded_steps, side_by_side, stacked_steps
from tests.pretended_device import DeviceTensor


class PretendedGraph:
    """A graph of a step, which counts its repetitions."""

    def __init__(self, step: Callable[[], object]) -> None:
        self._step: Callable[[], object] | None = step
        self._recording = _Recording()
        self.repeats = 0

    def pool(self) -> tuple[int, int]:
        """Return its memory."""
        return 0, 0

    def replay(self) -> None:
        """Take the step."""
        self.repeats += 1
        if self._step is not None:
            with self._recording:
                self._step()
            self._step = None
        else:
            self._recording.repeat()


class _Recording(TorchDispatchMode):
    """Notes the operations that are computed within the block."""

    def __init__(self) -> None:
        super().__init__()
        self._done: list[tuple[Callable[..., Any], Any, Any, Any]] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **kwargs or {})
        self._done.append((function, args, kwargs or {}, result))
        return result

    @torch.no_grad()
    def repeat(self) -> None:
        """Compute them again, with the same tensors."""
        for function, args, kwargs, result in self._done:
            again = function(*args, **kwargs)
            for old, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                if isinstance(old, Tensor) and _address(old) != _address(new):
                    old.copy_(new)


def _address(tensor: Tensor) -> int:
    held = tensor.held if isinstance(tensor, DeviceTensor) else tensor
    return held.data_ptr()


@contextmanager
def pretended_graphs() -> Iterator[list[PretendedGraph]]:
    """Let clients that are stacked, or side by side, record such graphs; return them."""
    made = list[PretendedGraph]()

    def record(step: Callable[[], None], memory: object) -> PretendedGraph:
        made.append(PretendedGraph(step))
        return made[-1]

    with (
        patch.object(recorded_steps, "_graph_of", record),
        patch.object(recorded_steps, "without_waiting", nullcontext),
        patch.object(stacked_steps, "can_record", lambda device: True),
        patch.object(lanes, "graph_of", record),
        patch.object(lanes, "without_waiting", waiting_refused),
        patch.object(lanes, "can_record", lambda device: True),
        patch.object(side_by_side, "can_record", lambda device: True),
    ):
        yield made


@contextmanager
def waiting_refused() -> Iterator[None]:
    """Let numbers not be read, as that waits for a GPU."""
    with _Refusal():
        yield


class _Refusal(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("called a synchronizing CUDA operation")
        return function(*args, **kwargs or {})
