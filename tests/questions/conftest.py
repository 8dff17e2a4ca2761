"""Fixtures: simulated runs for tests of attacks."""

import pytest

from overheard.testing import trial
from overheard.testing.planted_runs.planted_identity import IdentityRun
from overheard.testing.planted_runs.planted_labels import LabelSharesRun
from overheard.testing.planted_runs.planted_membership import MembershipRun
from overheard.testing.planted_runs.planted_shift import ShiftingRun


@pytest.fixture(scope="session")
def leaky() -> LabelSharesRun:
    return trial.skewed_run()


@pytest.fixture(scope="session")
def tight() -> LabelSharesRun:
    return trial.leak_free_run()


@pytest.fixture(scope="session")
def still() -> tuple[ShiftingRun, ...]:
    return trial.constant_runs()


@pytest.fixture(scope="session")
def different() -> IdentityRun:
    return trial.distinct_users_run()


@pytest.fixture(scope="session")
def by_heart() -> MembershipRun:
    return trial.memorised_run()


@pytest.fixture(scope="session")
def never_seen() -> MembershipRun:
    return trial.unseen_run()


@pytest.fixture(scope="session")
def alike() -> IdentityRun:
    return trial.identical_users_run()
