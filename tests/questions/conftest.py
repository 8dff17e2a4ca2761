"""Fixtures: simulated runs for tests of attacks."""

import pytest

from overheard.testing import trial
from overheard.testing.worlds.planted import Overheard
from overheard.testing.worlds.planted_identity import Peopled
from overheard.testing.worlds.planted_membership import Remembered
from overheard.testing.worlds.planted_shift import ShiftingRun


@pytest.fixture(scope="session")
def leaky() -> Overheard:
    return trial.skewed()


@pytest.fixture(scope="session")
def tight() -> Overheard:
    return trial.tight()


@pytest.fixture(scope="session")
def shifting() -> tuple[ShiftingRun, ...]:
    return trial.shifting()


@pytest.fixture(scope="session")
def still() -> tuple[ShiftingRun, ...]:
    return trial.still()


@pytest.fixture(scope="session")
def different() -> Peopled:
    return trial.different()


@pytest.fixture(scope="session")
def by_heart() -> Remembered:
    return trial.by_heart()


@pytest.fixture(scope="session")
def never_seen() -> Remembered:
    return trial.never_seen()


@pytest.fixture(scope="session")
def alike() -> Peopled:
    return trial.alike()
