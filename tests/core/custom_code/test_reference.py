"""References are imported, and every failure is one message."""

import sys
from pathlib import Path

import pytest

from overheard.core.custom_code.guard import explain_failures
from overheard.core.custom_code.reference import (
    NO_CODE_VARIABLE,
    find_module_file,
    import_reference,
    outside_settings,
)
from overheard.core.errors import DataError, PlanError
from overheard.data.datasets.custom import Own as Data
from overheard.defenses.mm_aug import MmAug
from overheard.learning.models.custom import Own as Net
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.transformer import Transformer


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


def test_a_failure_of_custom_code_names_cause_place_and_contract():
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


def test_no_code_refuses_a_reference_before_its_import(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    (folder / "own_refused.py").write_text("Net = 3")
    monkeypatch.setenv(NO_CODE_VARIABLE, "1")
    with pytest.raises(PlanError, match="model: own_refused:Net is code, which --no-code"):
        import_reference("own_refused:Net", "model", PlanError)
    assert "own_refused" not in sys.modules


def test_finds_the_file_of_a_module_and_imports_nothing(folder: Path):
    package = folder / "own_package"
    package.mkdir()
    for name in ("__init__.py", "part.py"):
        (package / name).write_text("raise RuntimeError")
    assert find_module_file("own_package.part") is None
    assert find_module_file("own_package.part", folder) == package / "part.py"
    assert find_module_file("own_package", folder) == package / "__init__.py"
    for missing in ("own_package.other", "own_package.part.deeper", "sys", "not_there.part"):
        assert find_module_file(missing, folder) is None
    bare = folder / "bare_package" / "inner"  # neither has an `__init__.py`
    bare.mkdir(parents=True)
    (bare / "part.py").touch()
    assert find_module_file("bare_package.inner.part", folder) == bare / "part.py"
    assert find_module_file("bare_package.inner", folder) is None
    assert "own_package" not in sys.modules


def test_knows_the_settings_that_only_a_user_may_give():
    given = {(one, outside_settings(one)) for one in (Net, Data, MmAug, Transformer, Mlp)}
    assert given == {
        (Net, frozenset({"reference", "base"})),
        (Data, frozenset({"candidates", "reference", "tokenizer"})),
        (MmAug, frozenset({"extractor"})),
        (Transformer, frozenset({"base"})),
        (Mlp, frozenset()),
    }
