"""A worker process and the parent's end of the connection to it.

Messages are pickled. This is safe because both ends belong to this program.
"""

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
from overheard.learning.workers.starter import fork_worker, worker_environment
from overheard.learning.workers.worker import (
    StoredTensor,
    TensorHeader,
    TensorsFollow,
    WorkerFailure,
    WorkerRequest,
    WorkerResponse,
)

WORKER_CODE = "from overheard.learning.workers.worker import serve; serve({handle}, {core})"
"""Code of a worker: a fresh interpreter that never imports the caller's `__main__`. So scripts
need no guard, and notebooks, test runs and the command line work too."""

EXIT_TIMEOUT = 10.0
"""Seconds until a process whose connection is broken is killed."""


@final
class DeadWorkerError(WorkerError):
    """A worker process died during a request."""


@final
class WorkerProcess:
    """A worker process and the parent's end of the connection to it.

    Args:
        core: core to run on; None = no affinity.

    """

    def __init__(self, core: int | None) -> None:
        self.core = core
        self.connection, worker_end = Pipe()
        handle = worker_end.fileno()
        # In a process group of its own, so that Ctrl-C reaches only the parent. A worker whose
        # parent is gone reads the end of its connection.
        self.process = fork_worker(handle, core) or subprocess.Popen(
            [sys.executable, "-P", "-c", WORKER_CODE.format(handle=handle, core=core)],
            pass_fds=(handle,),
            process_group=0,
            stdin=subprocess.DEVNULL,
            env=worker_environment(),
        )
        worker_end.close()

    def send(self, request: bytes) -> None:
        """Send a request from `pickle_request`.

        Raises:
            DeadWorkerError: if the worker is dead.

        """
        try:
            self.connection.send_bytes(request)
        except OSError as error:
            raise self._death_error("taking a request") from error

    def receive(self, doing: str) -> WorkerResponse:
        """Wait for the response.

        Args:
            doing: description of the request, for error messages.

        Raises:
            DeadWorkerError: if the worker is dead.

        """
        try:
            response: WorkerResponse = self.connection.recv()
        # A plain OSError: the worker died while it sent a message.
        except (EOFError, OSError) as error:
            raise self._death_error(doing) from error
        return response

    def receive_tensors(self, doing: str) -> Mapping[str, Tensor] | WorkerFailure:
        """Wait for the requested tensors, or for the failure.

        Args:
            doing: description of the request, for error messages.

        Raises:
            DeadWorkerError: if the worker is dead.

        """
        response = self.receive(doing)
        if isinstance(response, WorkerFailure):
            return response
        assert isinstance(response, TensorsFollow), (
            "a request for tensors returns tensors or fails"
        )
        return {header.name: self._receive_tensor(header) for header in response.tensors}

    def kill(self) -> None:
        """Kill the process without waiting for its end."""
        self.process.kill()

    def _receive_tensor(self, header: TensorHeader) -> Shaped[Tensor, "..."]:
        """Receive the bytes of a tensor that follow a response."""
        tensor = torch.empty(header.shape, dtype=header.dtype)
        try:
            self.connection.recv_bytes_into(tensor.numpy().reshape(-1))
        except (EOFError, OSError) as error:
            raise self._death_error("sending tensors") from error
        return tensor

    def _death_error(self, doing: str) -> DeadWorkerError:
        try:
            code = self.process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            # Its connection is broken, so it cannot be used again.
            self.process.kill()
            code = self.process.wait()
        return DeadWorkerError(
            f"worker process {self.process.pid} died (exit code {code}) while {doing}; if the "
            "machine ran out of memory, use fewer workers or the engine 'sequential'"
        )


def pickle_request(request: WorkerRequest) -> bytes:
    """Pickle a request."""
    return bytes(ForkingPickler.dumps(request))


def store_tensor(tensor: Shaped[Tensor, "..."], path: Path) -> StoredTensor:
    """Write a tensor to a file that worker processes can memory-map."""
    tensor.detach().cpu().contiguous().numpy().tofile(path)
    return StoredTensor(str(path), tuple(tensor.shape), tensor.dtype)
