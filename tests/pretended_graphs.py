"""CUDA graphs without a GPU: what a step computes is noted, and repeated on the same tensors.

As in a real graph, numbers of Python are those of the recording, each repetition reads and
writes the memory of the recording, and nothing may be read on the host.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

READING = torch.ops.aten._local_scalar_dense.default


class Graph(TorchDispatchMode):
    """A recorded step."""

    replays = 0
    """Repetitions of all graphs."""

    def __init__(self) -> None:
        super().__init__()
        self._done: list[tuple[Callable[..., Any], Any, Any, Any]] = []

    def capture_begin(self, pool: tuple[int, int], capture_error_mode: str) -> None:
        assert capture_error_mode == "thread_local"
        self.__enter__()

    def capture_end(self) -> None:
        self.__exit__(None, None, None)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is READING:
            raise RuntimeError("operation not permitted when stream is capturing\nLong text.")
        result = function(*args, **kwargs or {})
        self._done.append((function, args, kwargs or {}, result))
        return result

    def replay(self) -> None:
        Graph.replays += 1
        with torch.no_grad():
            for function, args, kwargs, result in self._done:
                again = function(*args, **kwargs)
                for old, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                    if isinstance(old, Tensor) and old.data_ptr() != new.data_ptr():
                        old.copy_(new)


class _Refusal(TorchDispatchMode):
    """Refuses what waits for the GPU."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is READING:
            raise RuntimeError("called a synchronizing CUDA operation")
        return function(*args, **kwargs or {})


class Event:
    def wait(self, stream: object) -> None:
        """Wait for nothing: all is done in order."""


class Stream:
    def __init__(self, device: torch.device) -> None:
        self.device = device

    def wait_stream(self, other: object) -> None:
        """Wait for nothing: all is done in order."""

    def record_event(self) -> Event:
        return Event()


def pretend_graphs(monkeypatch: pytest.MonkeyPatch, *modules: object) -> None:
    """Let these modules, which have `records_steps`, record steps on the CPU."""
    refusals = list[_Refusal]()

    def enter_stream(stream: Stream) -> AbstractContextManager[None]:
        return nullcontext()

    def set_mode(mode: int | str) -> None:
        if mode == "error":
            refusals.append(_Refusal())
            refusals[-1].__enter__()
        else:
            refusals.pop().__exit__(None, None, None)

    for module in modules:
        monkeypatch.setattr(module, "records_steps", lambda device: True)
    pretended: dict[str, object] = {
        "CUDAGraph": Graph,
        "Stream": Stream,
        "stream": enter_stream,
        "current_stream": Stream,
        "graph_pool_handle": lambda: (0, 1),
        "get_rng_state": lambda device: torch.zeros(1, dtype=torch.uint8),
        "get_sync_debug_mode": lambda: 0,
        "set_sync_debug_mode": set_mode,
        "memory_reserved": lambda device: 0,
        "synchronize": lambda device: None,
    }
    for name, one in pretended.items():
        monkeypatch.setattr(torch.cuda, name, one)
    monkeypatch.setattr(Graph, "replays", 0)
