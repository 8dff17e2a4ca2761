"""Exit codes and options."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console

from overheard.auditing.inputs import Resources
from overheard.cli import tracking
from overheard.cli.exits import BROKEN_PIPE, FAILURE, SigtermHandler, run_command
from overheard.cli.tracking import log_audit, require_mlflow
from overheard.cli.workers import STEPS_OF_AUDITS, WorkerOptions, parse_workers
from overheard.core.custom_code.reference import NO_CODE_VARIABLE
from overheard.core.errors import OutputError, PlanError
from overheard.core.failures import DEBUG_VARIABLE
from overheard.findings.audit import Audit
from overheard.learning.models.custom import Own
from tests.auditing.plans import TINY
from tests.cli.conftest import Command, assert_user_error
from tests.tracking.documents import audit_folder


def ended(error: BaseException, sigterm: SigtermHandler | None = None) -> int:
    def command(*, standalone_mode: bool) -> None:
        raise error

    return run_command(command, sigterm or SigtermHandler())


@pytest.mark.slow
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


@pytest.mark.slow
def test_errors_of_users_are_one_message(capsys: pytest.CaptureFixture[str]):
    assert ended(PlanError("mend this")) == 2
    assert capsys.readouterr().err == "overheard: mend this\n"
    assert ended(OSError(28, "No space left", "disk")) == 2
    assert capsys.readouterr().err == "overheard: disk: No space left\n"


@pytest.mark.slow
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


@pytest.mark.slow
def test_other_exits_keep_their_code():
    assert ended(SystemExit(0)) == 0


@pytest.mark.slow
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


NAME = "module_that_a_plan_names"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a plan whose network fails when it is imported."""
    monkeypatch.chdir(tmp_path)
    # What a command changes of them is undone after the test.
    monkeypatch.setenv(NO_CODE_VARIABLE, "0")
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path(f"{NAME}.py").write_text("raise RuntimeError('it ran')")
    training = TINY.training.model_copy(update={"model": Own(f"{NAME}:Net")})
    Path("plan.toml").write_text(TINY.model_copy(update={"training": training}).toml())
    return tmp_path


LISTED = f"  training.model: {NAME}:Net ({{folder}}/{NAME}.py)"


@pytest.mark.parametrize("arguments", [("plan", "check", "plan.toml"), ("audit", "plan.toml")])
def test_lists_the_code_before_it_runs(
    folder: Path, overheard: Command, arguments: tuple[str, ...]
):
    said = overheard(*arguments)
    lines = (said.out if arguments[0] == "plan" else said.err).splitlines()
    assert lines[:2] == [
        "The plan runs code that is not Overheard's, which can do all that you can:",
        LISTED.format(folder=folder),
    ]
    assert "RuntimeError: it ran" in said.err.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "check", "plan.toml"),
        ("audit", "plan.toml"),
        ("canaries", "plan.toml", "--out", "canaries"),
    ],
)
def test_refuses_the_code_of_a_plan(
    folder: Path, overheard: Command, arguments: tuple[str, ...]
):
    said = overheard(*arguments, "--no-code")
    assert_user_error(said, "which --no-code refuses", LISTED.format(folder=folder).strip())
    assert NAME not in sys.modules
    assert sorted(one.name for one in folder.iterdir()) == [f"{NAME}.py", "plan.toml"]


@pytest.mark.parametrize("option", ["--model", "--data"])
def test_init_refuses_the_code_of_an_option(folder: Path, overheard: Command, option: str):
    arguments = ("--simulate", option, f"{NAME}:Net", "--no-code", "--force")
    said = overheard("init", *arguments)
    assert said.code == 2
    assert f"{NAME}:Net is code, which --no-code refuses" in said.err
    assert NAME not in sys.modules


def test_a_plan_without_code_says_nothing_of_it(folder: Path, overheard: Command, plan: Path):
    said = overheard("plan", "check", plan, "--no-code", "--no-estimate")
    assert said.code == 0
    assert "code" not in said.out
    told = overheard("plan", "check", plan, "--no-estimate", "--json")
    assert json.loads(told.out)["code"] == []


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1", WorkerOptions(1)),
        ("48", WorkerOptions(48)),
        ("ray", WorkerOptions(None, "local")),
        ("ray://head.example:10001", WorkerOptions(None, "ray://head.example:10001")),
    ],
)
def test_accepts_a_number_ray_or_an_address(text: str, meant: WorkerOptions):
    assert parse_workers(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-1",
        "",
        "2.5",
        "Ray",
        "ray://",
        "ray://host",
        "http://host:80",
        "ray://a:1/x",
        "٣٣٣٣٣٣٣",
    ],
)
def test_refuses_other_values_and_lists_valid_ones(text: str):
    with pytest.raises(typer.BadParameter, match=r"ray://host:10001"):
        parse_workers(text)


def test_passes_cluster_and_processes_on(overheard: Command, monkeypatch: pytest.MonkeyPatch):
    given = list[Resources]()

    def audit(*_: object, resources: Resources, **__: object) -> Audit:
        given.append(resources)
        raise KeyboardInterrupt

    monkeypatch.setattr("overheard.cli.audit_and_report.audit", audit)
    overheard("audit", "--device", "cpu", "--workers", "ray")
    overheard("audit", "--device", "cpu", "--workers", "2")
    assert [(one.workers, one.cluster) for one in given] == [(None, "local"), (2, None)]


def test_the_module_that_workers_import_beforehand_exists() -> None:
    assert find_spec(STEPS_OF_AUDITS) is not None


def test_refuses_before_the_audit_if_the_package_is_missing(
    monkeypatch: pytest.MonkeyPatch, overheard: Command, tmp_path: Path
) -> None:
    monkeypatch.setattr(tracking, "find_spec", lambda name: None)
    require_mlflow(None)
    with pytest.raises(OutputError, match=r"--mlflow needs another package: .*\[mlflow\]"):
        require_mlflow("default")
    said = overheard("audit", "--mlflow", "default", "--out", tmp_path / "out")
    assert said.code == 2
    assert "'.[mlflow]'" in said.err
    assert not (tmp_path / "out").exists()


def test_logs_and_prints_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    folder, text = audit_folder(tmp_path / "audit"), StringIO()
    log_audit(folder, None, Console(file=text))
    assert text.getvalue() == ""
    store = tmp_path / "store"
    log_audit(folder, store.as_uri(), Console(file=text, width=200))
    run = text.getvalue().removeprefix("Logged to MLflow: run ").strip()
    assert list(store.rglob(run))
