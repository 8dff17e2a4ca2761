"""Our end of the connection to a worker: however the worker goes, it counts as dead."""

import os
import struct
from multiprocessing.connection import Pipe
from multiprocessing.reduction import ForkingPickler

import pytest
import torch

from overheard.learning.workers.worker import Did, NamedTensor
from overheard.learning.workers.worker_process import DeadWorkerError, WorkerProcess

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers inherit a connection")

CUT = struct.pack("!i", 100) + b"ten bytes."
"""A message of 100 bytes, of which 10 came."""


def cut_off(*messages: bytes) -> WorkerProcess:
    """A worker that said so much and went half-way through the next message."""
    worker = WorkerProcess(None)
    ours, theirs = Pipe()
    for message in messages:
        theirs.send_bytes(message)
    os.write(theirs.fileno(), CUT)
    theirs.close()
    # The process itself reads the end of its connection, and ends.
    worker.connection.close()
    worker.connection = ours
    return worker


def test_a_worker_that_dies_half_way_through_an_answer_is_dead():
    worker = cut_off()
    with worker.connection, pytest.raises(DeadWorkerError, match="while doing a task"):
        worker.answer("doing a task")
    assert worker.process.returncode is not None


def test_a_worker_that_dies_half_way_through_a_tensor_is_dead():
    told = ForkingPickler.dumps(Did((NamedTensor("delta", (25,), torch.float32),)))
    worker = cut_off(told)
    with worker.connection, pytest.raises(DeadWorkerError, match="while sending tensors"):
        worker.tensors("doing a task")
