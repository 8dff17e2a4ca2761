"""Runs that every attack is held to."""

import pytest

from overheard.core.seeds import Seed
from tests.worlds import planted_shift
from tests.worlds.planted import EVEN, SKEWED, Overheard, federate, hold
from tests.worlds.planted_identity import EVERYONE, Peopled, anybody, federate_people, person
from tests.worlds.planted_membership import Remembered, federate_records
from tests.worlds.planted_shift import Followed, federate_on


@pytest.fixture(scope="session")
def leaky() -> Overheard:
    """Each client holds one class above all, and sends what it learned from that."""
    return federate(SKEWED)


@pytest.fixture(scope="session")
def tight() -> Overheard:
    """Each client says what an even client would: its update has nothing of its own data."""
    even = federate(EVEN)
    return hold(even.start, even.deltas, SKEWED, even.knowledge.auxiliary, even.sets)


@pytest.fixture(scope="session")
def shifting() -> tuple[Followed, ...]:
    """Every client goes over to one class above all."""
    return tuple(federate_on(planted_shift.SKEWED, Seed(number)) for number in range(2))


@pytest.fixture(scope="session")
def still() -> tuple[Followed, ...]:
    """Every client keeps what it has."""
    return tuple(federate_on(None, Seed(number)) for number in range(2))


@pytest.fixture(scope="session")
def different() -> Peopled:
    """Everyone has favourite labels, a look and a size, in prior and private examples alike."""
    return federate_people([person(number) for number in EVERYONE], Seed(0))


@pytest.fixture(scope="session")
def by_heart() -> Remembered:
    """Clients learned the records in question by heart."""
    return federate_records(by_heart=True)


@pytest.fixture(scope="session")
def never_seen() -> Remembered:
    """No client ever saw any of the records in question."""
    return federate_records(by_heart=False)


@pytest.fixture(scope="session")
def alike() -> Peopled:
    """Everyone is like everyone else, and holds other examples in every round."""
    return federate_people([anybody(number) for number in EVERYONE], Seed(0), fresh=True)
