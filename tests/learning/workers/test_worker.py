"""The worker's end of the connection: a lost connection is no error."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection, Pipe

import pytest

from overheard.learning.workers.worker import WorkerFailure, WorkerReady, serve

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers inherit a connection")

UNREADABLE = b"no request"


def stop_reading(connection: Connection) -> None:
    """Close the reading side: sending to this connection fails."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RD)


def test_ends_without_an_error_if_the_parent_is_gone_at_the_start():
    parent_end, worker_end = Pipe()
    handle = os.dup(worker_end.fileno())
    worker_end.close()
    parent_end.close()
    serve(handle, None)


def test_ends_without_an_error_if_a_failure_cannot_be_sent():
    parent_end, worker_end = Pipe()
    with worker_end, parent_end, ThreadPoolExecutor(1) as executor:
        serving = executor.submit(serve, os.dup(worker_end.fileno()), None)
        assert parent_end.recv() == WorkerReady()
        parent_end.send_bytes(UNREADABLE)
        assert isinstance(parent_end.recv(), WorkerFailure)
        stop_reading(parent_end)
        parent_end.send_bytes(UNREADABLE)
        serving.result(60)
