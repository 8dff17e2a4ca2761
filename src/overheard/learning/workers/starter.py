"""The start of worker processes by the standard library.

On Linux its fork server imports torch once, and forks each worker from there. A worker then
starts in milliseconds. An interpreter of its own, as elsewhere, takes seconds to import torch,
and holds another copy of it in memory. This module is light, so that a command can start the
server before it imports torch itself.
"""

import os
import signal
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from threading import RLock
from typing import Any, final

from overheard.learning.threads import available_cores

# Forking a process with torch is not safe beside Linux.
if sys.platform == "linux":
    from multiprocessing.context import ForkServerContext as StartContext
    from multiprocessing.context import ForkServerProcess as StartedProcess
else:
    from multiprocessing.context import SpawnContext as StartContext
    from multiprocessing.context import SpawnProcess as StartedProcess

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""One thread per worker. No module is imported from the current folder, which may hold files of
a stranger, unless this process does so too. The allocator keeps freed memory, since the next
step needs the same amount (otherwise zeroing new pages takes a sixth of a worker's time)."""

NEEDED = "overheard.learning.workers.worker"
"""Module that every worker needs; it imports torch."""


def import_path() -> str:
    """Return the PYTHONPATH with which workers find the modules of this process."""
    return os.pathsep.join(path or os.getcwd() for path in _text_paths())


def _text_paths() -> list[str]:
    """Return `sys.path` without the objects that Python skips there, such as a `Path`."""
    return [path for path in sys.path if isinstance(path, str)]


def start(modules: Sequence[str] = ()) -> None:
    """Start the fork server in the background, unless it runs already or none is supported.

    Args:
        modules: what workers will need beside torch; a new server imports them once for all.

    """
    if is_in_fork():
        return
    _STARTED_BY[:] = [os.getpid()]
    if sys.platform == "linux":
        with _starting():
            forkserver.set_forkserver_preload([NEEDED, *modules])
            forkserver.ensure_running()


def is_in_fork() -> bool:
    """Return whether this process is a fork of one that had started the fork server.

    It knows the server and the workers of that process, but can neither use nor replace them.
    """
    return _STARTED_BY not in ([], [os.getpid()])


def start_for(workers: int | None, modules: Sequence[str] = ()) -> None:
    """Start the fork server in the background, if there will be several workers.

    Args:
        workers: the number of workers; None = one per core.
        modules: see `start`.

    """
    if (available_cores() if workers is None else workers) > 1:
        start(modules)


@final
class _Worker(StartedProcess):
    """A process that starts like a worker."""

    def start(self) -> None:
        """Start the process."""
        with _starting():
            super().start()


@final
class WorkerContext(StartContext):
    """The context of the workers of a pool, which remembers them."""

    def __init__(self) -> None:
        super().__init__()
        self.workers = list[_Worker]()

    def Process(self, **settings: Any) -> _Worker:  # type: ignore[override]  # noqa: N802
        """Return a worker that is not started."""
        self.workers.append(_Worker(**settings))
        return self.workers[-1]


_STARTED_BY: list[int] = []
"""ID of the process that started the fork server."""

_STARTING = RLock()
"""Held while a process starts."""


@contextmanager
def _starting() -> Iterator[None]:
    """Start processes in the environment of workers, apart from Ctrl-C and `__main__`.

    Ctrl-C reaches only the caller. Workers do not import the `__main__` of the caller, so that
    scripts need no guard.
    """
    added = ENVIRONMENT | {"PYTHONPATH": import_path()}
    hidden = {"__spec__": None, "__file__": None}
    with (
        _STARTING,
        _changed(os.environ, added),
        _changed(vars(sys.modules["__main__"]), hidden),
        # The code that starts the fork server names them, and can name texts only.
        _changed(vars(sys), {"path": _text_paths()}),
    ):
        # Its start would allow Ctrl-C again.
        resource_tracker.ensure_running()
        signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, signals)


@contextmanager
def _changed(values: MutableMapping[str, Any], change: Mapping[str, Any]) -> Iterator[None]:
    """Set some of the values for a while."""
    before = {name: values[name] for name in change if name in values}
    values.update(change)
    try:
        yield
    finally:
        for name in change.keys() - before.keys():
            del values[name]
        values.update(before)
