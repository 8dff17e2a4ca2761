"""What the starter of workers runs: it forks a worker on each request."""

import gc
import json
import os
import socket
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress

from overheard.core.plugin_registry import import_own
from overheard.learning.workers.starter import MOST_BYTES
from overheard.learning.workers.worker import serve

POLL_SECONDS = 0.005
"""Seconds between two looks at a worker whose end has a time limit."""


def serve_starts(handle: int, modules: Sequence[str]) -> None:
    """Fork workers and wait for them until the caller closes the connection.

    Args:
        handle: file descriptor of the inherited end of the connection.
        modules: modules of Overheard to import; one that fails is left to the workers that
            need it.

    """
    for name in modules:
        with suppress(ImportError):
            import_own(name)
    # Objects of the imports are left alone, so that workers share their memory.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=handle) as caller:
        answer: int | None = 0
        while True:
            try:
                caller.send(json.dumps(answer).encode())
                content, handles, _, _ = socket.recv_fds(caller, MOST_BYTES, 1)
            except OSError:
                return
            if not content:
                return
            request = json.loads(content)
            if "fork" in request:
                answer = _fork(caller, handles[0], request["fork"], request["folder"])
                os.close(handles[0])
            else:
                answer = _wait(request["wait"], request["seconds"])


def _fork(caller: socket.socket, handle: int, core: int | None, folder: str) -> int:
    """Fork a worker that serves this connection, and return its process ID."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        caller.close()
        os.setpgid(0, 0)
        os.chdir(folder)
        serve(handle, core)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _wait(pid: int, seconds: float | None) -> int | None:
    """Return the exit code of a worker; None if it still runs after this many seconds."""
    if seconds is None:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    until = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(POLL_SECONDS)
