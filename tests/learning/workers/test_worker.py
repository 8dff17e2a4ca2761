"""A worker's end of the connection: whatever becomes of the other end, it is no error."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection, Pipe

import pytest

from overheard.learning.workers.worker import Failed, Ready, serve

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers inherit a connection")

UNREADABLE = b"no request"


def go_deaf(connection: Connection) -> None:
    """Whoever sends to this connection is told that nobody listens; what it sends arrives."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RD)


def test_ends_quietly_where_nobody_hears_that_it_is_up():
    ours, theirs = Pipe()
    handle = os.dup(theirs.fileno())
    theirs.close()
    ours.close()
    serve(handle, None)


def test_ends_quietly_where_nobody_hears_what_failed():
    ours, theirs = Pipe()
    with theirs, ours, ThreadPoolExecutor(1) as executor:
        serving = executor.submit(serve, os.dup(theirs.fileno()), None)
        assert ours.recv() == Ready()
        ours.send_bytes(UNREADABLE)
        assert isinstance(ours.recv(), Failed)
        go_deaf(ours)
        ours.send_bytes(UNREADABLE)
        serving.result(60)
