"""How the command ends when it is not allowed to finish."""

import os
import subprocess
import sys

import pytest

from overheard.cli.exits import BROKEN_PIPE, FAILURE, SigtermHandler, run_command
from overheard.core.errors import PlanError
from overheard.core.failures import DEBUG_VARIABLE

pytestmark = pytest.mark.slow


def ended(error: BaseException, sigterm: SigtermHandler | None = None) -> int:
    def command(*, standalone_mode: bool) -> None:
        raise error

    return run_command(command, sigterm or SigtermHandler())


@pytest.mark.parametrize("arguments", [("schema",), ("show", "--help")])
def test_a_reader_that_leaves_causes_no_traceback(arguments: tuple[str, ...]):
    command = subprocess.Popen(
        [sys.executable, "-m", "overheard", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert command.stdout is not None
    assert command.stderr is not None
    command.stdout.close()
    with command.stderr as told:
        assert told.read() == ""
    assert command.wait(timeout=60) == BROKEN_PIPE


def test_errors_of_users_are_one_message(capsys: pytest.CaptureFixture[str]):
    assert ended(PlanError("mend this")) == 2
    assert capsys.readouterr().err == "overheard: mend this\n"
    assert ended(OSError(28, "No space left", "disk")) == 2
    assert capsys.readouterr().err == "overheard: disk: No space left\n"


def test_signals_are_told(capsys: pytest.CaptureFixture[str]):
    assert ended(KeyboardInterrupt()) == 130
    assert "overheard: interrupted; finished work" in capsys.readouterr().err
    wrapped = RuntimeError("Error calling __set_name__")
    wrapped.__cause__ = KeyboardInterrupt()
    assert ended(wrapped) == 130
    assert "overheard: interrupted; finished work" in capsys.readouterr().err
    received = SigtermHandler()
    with pytest.raises(KeyboardInterrupt):
        received(15, None)
    received(15, None)
    assert ended(KeyboardInterrupt(), received) == 143
    assert "overheard: terminated; finished work" in capsys.readouterr().err


def test_other_exits_keep_their_code():
    assert ended(SystemExit(0)) == 0


def test_a_failure_of_overheard_never_ends_like_a_failed_rule(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert ended(ArithmeticError("singular")) == FAILURE
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    monkeypatch.delenv(DEBUG_VARIABLE)
    assert ended(MemoryError()) == FAILURE
    printed = capsys.readouterr().err
    assert printed.startswith("overheard: failed, MemoryError. This is a fault of Overheard")
    assert "Traceback" not in printed
    # Code that a plan names may end the interpreter.
    assert ended(SystemExit(1)) == FAILURE
