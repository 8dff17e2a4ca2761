"""How all tests are run: no clock can fail a test, and each failure of Overheard does.

Nothing waits for a disk either.
"""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from overheard.core.failures import raise_failures

# A deadline for an example, and one of 30 s to make the first ten, are kept by the clock on the
# wall: they say that a machine is busy, not that a test fails.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", unhurried, max_examples=25)
settings.register_profile("nightly", unhurried, max_examples=200)
settings.load_profile("quick")

# A flush takes milliseconds, and an audit makes dozens. No test cuts the power of the machine,
# and a killed process loses nothing that it has written. A handle of no file is refused still.
os.fsync = os.fstat

# A failure in an attack, a scorer or a page would otherwise be a sentence of the report.
raise_failures()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let each worker begin with slow files, so that none is left with one at the end.

    A worker is given one block of the tests, and takes over tests of another when it is done.
    A file stays in its block, beside the files of its folder, which share fixtures.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    blocks = dict[Path, int]()
    for number, item in enumerate(items):
        blocks.setdefault(item.path, number * workers // len(items))
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: (blocks[item.path], item.path not in slow))


def pytest_collection_finish() -> None:
    """Leave what was imported out of garbage collection, which takes a tenth of all time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
