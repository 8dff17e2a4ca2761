"""Fixtures: simulated runs for tests of attacks."""

import pytest

from overheard.questions.membership.checks import simulate_membership
from overheard.questions.shift.checks import constant_runs
from overheard.testing.planted_labels import leak_free_run, skewed_run
from overheard.testing.planted_users import distinct_users_run, identical_users_run
from overheard.testing.trial import PlantedRun


@pytest.fixture(scope="session")
def leaky() -> PlantedRun:
    return skewed_run()


@pytest.fixture(scope="session")
def tight() -> PlantedRun:
    return leak_free_run()


@pytest.fixture(scope="session")
def still() -> tuple[PlantedRun, ...]:
    return constant_runs()


@pytest.fixture(scope="session")
def different() -> PlantedRun:
    return distinct_users_run()


@pytest.fixture(scope="session")
def by_heart() -> PlantedRun:
    return simulate_membership(memorised=True)


@pytest.fixture(scope="session")
def never_seen() -> PlantedRun:
    return simulate_membership(memorised=False)


@pytest.fixture(scope="session")
def alike() -> PlantedRun:
    return identical_users_run()
