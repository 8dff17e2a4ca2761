"""One worker process, and our end of the connection to it.

What travels there is pickled: both ends are ours, and nobody else holds one.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.connection import Pipe
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import final

import torch
from jaxtyping import Shaped
from torch import Tensor

from overheard.core.errors import WorkerError
from overheard.learning.workers.worker import (
    Answer,
    Did,
    Failed,
    NamedTensor,
    Request,
    StoredTensor,
)

START = "from overheard.learning.workers.worker import serve; serve({handle}, {core})"
"""A worker is a fresh interpreter that never imports the caller's `__main__`: so a script needs
no guard, and a notebook, a test run or the command line will do as well."""

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""One thread a worker; and memory that is freed stays with the worker, since a step wants the
same again at once (a sixth of a worker's time went into having its pages zeroed)."""


PATIENCE = 10.0
"""Seconds that a process has to end by itself once its connection is broken."""


@final
class DeadWorkerError(WorkerError):
    """It is gone, with whatever it was doing."""


@final
class WorkerProcess:
    """One process, and our end of the connection to it.

    Args:
        core: the one core to run on; None leaves that to the system.

    """

    def __init__(self, core: int | None) -> None:
        self.core = core
        self.connection, theirs = Pipe()
        handle = theirs.fileno()
        # In a process group of its own, so that Ctrl-C is for the parent alone to answer. A
        # worker whose parent is gone, however it went, reads the end of its connection.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", START.format(handle=handle, core=core)],
            pass_fds=(handle,),
            process_group=0,
            stdin=subprocess.DEVNULL,
            env=os.environ | ENVIRONMENT | {"PYTHONPATH": import_path()},
        )
        theirs.close()

    def send(self, request: bytes) -> None:
        """Have it take a request, as `written` writes it.

        Raises:
            DeadWorkerError: if it is gone.

        """
        try:
            self.connection.send_bytes(request)
        except OSError as error:
            raise self._death("taking a request") from error

    def answer(self, doing: str) -> Answer:
        """Wait for what it says.

        Args:
            doing: what it was asked for, in words.

        Raises:
            DeadWorkerError: if it is gone.

        """
        try:
            answer: Answer = self.connection.recv()
        # A plain OSError: it went half-way through a message.
        except (EOFError, OSError) as error:
            raise self._death(doing) from error
        return answer

    def tensors(self, doing: str) -> Mapping[str, Tensor] | Failed:
        """Wait for the tensors that it has been asked for, or for why it cannot give them.

        Args:
            doing: what it was asked for, in words.

        Raises:
            DeadWorkerError: if it is gone.

        """
        answer = self.answer(doing)
        if isinstance(answer, Failed):
            return answer
        assert isinstance(answer, Did), "whoever is asked for tensors gives them or fails"
        return {each.name: self._tensor(each) for each in answer.tensors}

    def kill(self) -> None:
        """End it at once, whatever it is doing; does not wait until it is gone."""
        self.process.kill()

    def _tensor(self, told: NamedTensor) -> Shaped[Tensor, "..."]:
        """Take the bytes of a tensor that follow on an answer."""
        taken = torch.empty(told.shape, dtype=told.dtype)
        try:
            self.connection.recv_bytes_into(taken.numpy().reshape(-1))
        except (EOFError, OSError) as error:
            raise self._death("sending tensors") from error
        return taken

    def _death(self, doing: str) -> DeadWorkerError:
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            # Its connection is broken, so it is of no more use.
            self.process.kill()
            code = self.process.wait()
        return DeadWorkerError(
            f"worker process {self.process.pid} died (exit code {code}) while {doing}: if the "
            "machine ran out of memory, ask for fewer workers or for the engine 'sequential'"
        )


def written(request: Request) -> bytes:
    """A request as it travels."""
    return bytes(ForkingPickler.dumps(request))


def stored(tensor: Shaped[Tensor, "..."], path: Path) -> StoredTensor:
    """Lay a tensor where worker processes can map it."""
    tensor.detach().cpu().contiguous().numpy().tofile(path)
    return StoredTensor(str(path), tuple(tensor.shape), tensor.dtype)


def import_path() -> str:
    """Where workers find the modules that this process finds."""
    return os.pathsep.join(path or os.getcwd() for path in sys.path)
