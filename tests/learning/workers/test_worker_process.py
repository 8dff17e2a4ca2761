"""The parent's end of the connection: a worker whose connection breaks is dead."""

import os
import struct
from multiprocessing.connection import Pipe
from multiprocessing.reduction import ForkingPickler

import pytest
import torch

from overheard.learning.workers.worker import TensorHeader, TensorsFollow
from overheard.learning.workers.worker_process import DeadWorkerError, WorkerProcess

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers inherit a connection")

CUT = struct.pack("!i", 100) + b"ten bytes."
"""A message of 100 bytes, of which 10 arrived."""


def cut_off(*messages: bytes) -> WorkerProcess:
    """A worker that sent these messages and died within the next one."""
    worker = WorkerProcess(None)
    parent_end, worker_end = Pipe()
    for message in messages:
        worker_end.send_bytes(message)
    os.write(worker_end.fileno(), CUT)
    worker_end.close()
    # The process itself reads the end of its connection, and ends.
    worker.connection.close()
    worker.connection = parent_end
    return worker


@pytest.mark.slow
def test_a_worker_that_dies_within_a_response_is_dead():
    worker = cut_off()
    with worker.connection, pytest.raises(DeadWorkerError, match="while doing a task"):
        worker.receive("doing a task")
    assert worker.process.returncode is not None


def test_a_worker_that_dies_within_a_tensor_is_dead():
    message = ForkingPickler.dumps(
        TensorsFollow((TensorHeader("delta", (25,), torch.float32),))
    )
    worker = cut_off(message)
    with worker.connection, pytest.raises(DeadWorkerError, match="while sending tensors"):
        worker.receive_tensors("doing a task")
