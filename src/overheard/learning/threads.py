"""The number of cores and threads that computations use."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


def available_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


@contextmanager
def single_thread() -> Iterator[None]:
    """Let torch compute on one thread, and restore the number of threads afterwards.

    Small models gain next to nothing from a second thread. They run at a quarter of their speed
    if another process needs the core. Parallelism comes from processes instead.
    """
    import torch  # here, as commands count cores before they import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
