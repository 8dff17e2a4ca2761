"""Commands tell of recordings that they were not given."""

import sys
from pathlib import Path

import pytest

from tests.archive.test_recordings import record
from tests.cli.conftest import CPU, Command
from tests.planning.conftest import (
    STATED_RECIPE,
    STATED_TASK,
    ForeignRecording,
    foreign,
    simulated,
)

__all__ = ["foreign", "simulated"]


def test_show_tells_of_a_newer_recording_in_one_line(overheard: Command, tmp_path: Path):
    old, new = record(tmp_path / "run", 1000.0), record(tmp_path / "run-2", 2000.0)
    said = overheard("show", old)
    assert f"There is a newer recording: {new.resolve()} (1 round, 1970-01-01" in said.err
    assert "newer" not in overheard("show", new).err
    assert "newer" not in overheard("show", old, "--json").out


@pytest.fixture
def newest(foreign: ForeignRecording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording in the working directory, with an older one beside it."""
    folder = foreign(task=STATED_TASK, model="Logistic()", recipe=STATED_RECIPE)
    record(tmp_path / "older", 1000.0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    return folder


def test_init_takes_the_newest_recording_of_the_working_directory(
    overheard: Command, newest: Path
):
    said = overheard("init")
    assert said.code == 0, said.err
    assert f"Found the recording {newest.resolve()}" in said.err
    assert "the newest of 2" in said.err
    assert f"Next: overheard audit plan.toml --transcript {newest.name}" in said.out


def test_init_simulates_if_asked_to(overheard: Command, newest: Path):
    said = overheard("init", "--simulate")
    assert "Found" not in said.err
    assert 'source = "digits"' in Path("plan.toml").read_text()
    assert overheard("init", "--simulate", "--from-recording", newest).code == 2


def test_init_and_audit_tell_of_a_newer_recording(
    overheard: Command, newest: Path, tmp_path: Path
):
    record(tmp_path / f"{newest.name}-2", 9e9)
    said = overheard("init", "--from-recording", newest)
    assert f"There is a newer recording: {newest}-2" in said.err
    audited = overheard("audit", "plan.toml", "--transcript", newest.name, *CPU)
    assert f"There is a newer recording: {newest.name}-2" in audited.err
