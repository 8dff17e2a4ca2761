"""The starter: a process that imports torch once, and forks workers from it (Linux).

A worker then starts in milliseconds. An interpreter of its own takes seconds to import torch,
and holds another copy of it in memory. This module is light, so that a command can start the
starter before it imports torch itself.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import final

from overheard.learning.threads import available_cores

STARTER_CODE = (
    "from overheard.learning.workers.forking import serve_starts; serve_starts({}, {!r})"
)
"""Code of a starter: a fresh interpreter that never imports the caller's `__main__`. So scripts
need no guard, and notebooks, test runs and the command line work too."""

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""One thread per worker. The allocator keeps freed memory, since the next step needs the same
amount (otherwise zeroing new pages takes a sixth of a worker's time)."""

MOST_BYTES = 2**16
"""Most bytes of a message between a starter and its caller."""

LOST = 255
"""Exit code of a worker whose starter died before it told the true one."""


def is_supported() -> bool:
    """Return whether a process with torch can be forked here: not safe beside Linux."""
    return sys.platform == "linux"


def import_path() -> str:
    """Return the PYTHONPATH with which workers find the modules of this process."""
    return os.pathsep.join(path or os.getcwd() for path in sys.path)


def worker_environment() -> dict[str, str]:
    """Return the environment variables of workers and of the starter."""
    return os.environ | ENVIRONMENT | {"PYTHONPATH": import_path()}


def start(modules: Sequence[str] = ()) -> None:
    """Start the starter in the background, unless it runs already or none is supported.

    Args:
        modules: what workers will need beside torch; a new starter imports them once for all.

    """
    if is_supported():
        _current(modules)


def start_for(workers: int | None, modules: Sequence[str] = ()) -> None:
    """Start the starter in the background, if there will be several workers.

    Args:
        workers: the number of workers; None = one per core.
        modules: see `start`.

    """
    if (available_cores() if workers is None else workers) > 1:
        start(modules)


def is_prepared() -> bool:
    """Return whether the starter has imported what workers need."""
    return bool(_RUNNING) and _RUNNING[0].fits() and _RUNNING[0].is_ready()


def is_preparing() -> bool:
    """Return whether the starter still imports what workers need; forks would wait for that."""
    return bool(_RUNNING) and _RUNNING[0].fits() and not _RUNNING[0].is_ready()


def fork_worker(handle: int, core: int | None) -> "ForkedWorker | None":
    """Fork a worker; None = no starter is supported here, or it failed.

    Args:
        handle: file descriptor of the worker's end of its connection.
        core: core to run on; None = no affinity.

    """
    if not is_supported():
        return None
    try:
        return _current().fork(handle, core)
    except OSError:
        _discard()
        return None


@final
class ForkedWorker:
    """A worker process that the starter forked, with the methods of `subprocess.Popen`.

    Args:
        starter: the starter, which is its parent.
        pid: its process ID.

    """

    def __init__(self, starter: "_Starter", pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._starter = starter

    def kill(self) -> None:
        """Kill the process without waiting for its end."""
        # Until the starter has waited for it, no other process gets its ID.
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None = the process runs."""
        if self.returncode is None:
            try:
                self.returncode = self._starter.wait(self.pid, 0.0)
            except OSError:
                self.returncode = LOST
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process, and return its exit code.

        Raises:
            subprocess.TimeoutExpired: if it still runs after this many seconds.

        """
        if self.returncode is None:
            try:
                self.returncode = self._starter.wait(self.pid, timeout)
            except OSError:
                self.returncode = LOST
        if self.returncode is None:
            raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout or 0.0)
        return self.returncode


@final
class _Starter:
    """The starter process, and this process's end of the connection to it."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._import_path = import_path()
        self._lock = Lock()
        self._is_ready = False
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = here
        # In a process group of its own, so that Ctrl-C reaches only the caller.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", STARTER_CODE.format(there.fileno(), tuple(modules))],
            pass_fds=(there.fileno(),),
            process_group=0,
            stdin=subprocess.DEVNULL,
            env=worker_environment(),
        )
        there.close()
        self.close = weakref.finalize(self, _end, here, self._process)

    def fits(self) -> bool:
        """Return whether its workers would find the modules of this process."""
        return self._import_path == import_path() and self._process.poll() is None

    def is_ready(self) -> bool:
        """Return whether it has imported what workers need."""
        if self._is_ready:
            return True
        # Not `select.select`, which takes no file descriptor above 1,023.
        answers = select.poll()
        answers.register(self._socket, select.POLLIN)
        return bool(answers.poll(0))

    def fork(self, handle: int, core: int | None) -> ForkedWorker:
        """Fork a worker.

        Raises:
            OSError: if the starter is dead.

        """
        pid = self._ask({"fork": core, "folder": os.getcwd()}, [handle])
        assert pid is not None, "a starter that forks returns a process ID"
        return ForkedWorker(self, pid)

    def wait(self, pid: int, seconds: float | None) -> int | None:
        """Wait for a worker; return its exit code, or None after this many seconds.

        Raises:
            OSError: if the starter is dead.

        """
        return self._ask({"wait": pid, "seconds": seconds}, [])

    def _ask(self, request: dict[str, object], handles: list[int]) -> int | None:
        with self._lock:
            try:
                if not self._is_ready:
                    self._receive()
                    self._is_ready = True
                socket.send_fds(self._socket, [json.dumps(request).encode()], handles)
                return self._receive()
            except BaseException:
                # An answer may be pending, which the next request would take for its own.
                self.close()
                raise

    def _receive(self) -> int | None:
        answer = self._socket.recv(MOST_BYTES)
        if not answer:
            raise ConnectionResetError("the starter of workers died")
        number: int | None = json.loads(answer)
        return number


_RUNNING: list[_Starter] = []
"""The starter of this process, if it was started."""


_STARTING = Lock()
"""Held while the starter is started, so that two threads do not start two."""


def _current(modules: Sequence[str] = ()) -> _Starter:
    """Return the starter; start it if there is none that fits."""
    with _STARTING:
        if _RUNNING and not _RUNNING[0].fits():
            _discard()
        if not _RUNNING:
            _RUNNING.append(_Starter(modules))
        return _RUNNING[0]


def _discard() -> None:
    while _RUNNING:
        _RUNNING.pop().close()


def _end(here: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    here.close()
    process.kill()
    process.wait()
