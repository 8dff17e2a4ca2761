"""Fixture: a process that has imported Overheard, in which commands are watched."""

from collections.abc import Iterator

import pytest

from tests.hostile.audit_hook import WatchedCommands


@pytest.fixture(scope="session")
def commands() -> Iterator[WatchedCommands]:
    with WatchedCommands() as commands:
        yield commands
