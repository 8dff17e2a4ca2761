"""Runs that every attack is held to."""

import pytest

from tests.attacks.planted import EVEN, SKEWED, Overheard, federate, hold


@pytest.fixture(scope="session")
def leaky() -> Overheard:
    """Each client holds one class above all, and sends what it learned from that."""
    return federate(SKEWED)


@pytest.fixture(scope="session")
def tight() -> Overheard:
    """Each client says what an even client would: its update has nothing of its own data."""
    even = federate(EVEN)
    return hold(even.start, even.deltas, SKEWED, even.knowledge.auxiliary)
