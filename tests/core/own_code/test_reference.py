"""References are imported, and every failure is one message."""

import sys
from pathlib import Path

import pytest

from overheard.core.errors import DataError, PlanError
from overheard.core.own_code.guard import explain_failures
from overheard.core.own_code.reference import import_reference


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_a_module_in_the_working_directory_is_found(folder: Path):
    (folder / "own_network.py").write_text("Net = 3")
    assert import_reference("own_network:Net", "model", PlanError) == 3


def test_no_module_of_the_working_directory_hides_another(folder: Path):
    (folder / "json.py").write_text("Net = 3")
    with pytest.raises(DataError, match="json has no function or class Net"):
        import_reference("json:Net", "data", DataError)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", r"ZeroDivisionError: division by zero \(own_\w+.py, line 1\)\): correct"),
        ("raise SystemExit", "SystemExit"),
        ("import not_installed_here", "not_installed_here.*install its package"),
        ("def build(): ...", r"has no function or class bild \(did you mean build\?\)"),
    ],
)
def test_a_failing_module_is_one_message(folder: Path, code: str, message: str):
    name = f"own_{abs(hash(code))}"
    (folder / f"{name}.py").write_text(code)
    with pytest.raises(PlanError, match=message):
        import_reference(f"{name}:bild", "model", PlanError)


def test_a_failure_of_own_code_names_cause_place_and_contract():
    with (
        pytest.raises(
            PlanError, match=r"x failed, KeyError: 'a' \(test_reference.py, line \d+"
        ),
        explain_failures("x", "it takes nothing"),
    ):
        raise KeyError("a")


def test_errors_for_users_pass_unchanged():
    with pytest.raises(PlanError, match=r"^mine$"), explain_failures("x", "y"):
        raise PlanError("mine")
