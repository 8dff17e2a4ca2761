"""The command as called from a shell, and a small audit to call it on."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit as run_audit
from overheard.cli.main import _run
from tests.auditing.plans import TINY


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Command = Callable[..., CommandResult]

CPU = ("--device", "cpu", "--workers", "1")


def assert_user_error(said: CommandResult, *words: str) -> None:
    """Check for one message on stderr with place and remedy, and no traceback or stdout."""
    assert said.code == 2, said
    assert said.out == ""
    assert "Traceback" not in said.err
    assert said.err.count("overheard: ") == 1
    # Notes on verdicts may come first.
    assert "\noverheard: " in f"\n{said.err}"
    flat = " ".join(said.err.split())
    for word in words:
        assert word in flat, said.err


@pytest.fixture
def overheard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Call the command with these arguments."""

    def call(*arguments: str | Path) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["overheard", *map(str, arguments)])
        capsys.readouterr()
        code = _run()
        told = capsys.readouterr()
        return CommandResult(code, told.out, told.err)

    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished audit of the tiny plan; copy it before changing it."""
    folder = tmp_path_factory.mktemp("cli") / "audit"
    run_audit(TINY, folder, resources=Resources(device="cpu", workers=1))
    return folder


@pytest.fixture(scope="session")
def recording(finished: Path) -> Path:
    """A run with transcript and truth; copy it before changing it."""
    return finished / "runs" / "no_defense-seed0"


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """The tiny plan in a file."""
    path = tmp_path / "plan.toml"
    path.write_text(TINY.toml(), encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder except the times of its runs, which always differ."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "seconds.json"
    }
