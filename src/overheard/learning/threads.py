"""How many cores one computation takes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one core, then put the number of threads back.

    Small models gain next to nothing from a second thread and collapse to a quarter of their
    speed where another process wants the core; cores are filled with processes instead.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
