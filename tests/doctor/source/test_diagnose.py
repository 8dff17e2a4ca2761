"""Source code is read, never run, and whatever cannot be read is told."""

from pathlib import Path

import pytest

from overheard.core.errors import PlanError
from overheard.doctor.source.diagnose import diagnose_source, source_rules
from overheard.doctor.source.files import read_app_files

PRIVATE = "from opacus import PrivacyEngine\nengine = PrivacyEngine()\n"


def test_an_app_without_differential_privacy_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text("def fit():\n    return 1\n")
    found = diagnose_source(tmp_path)
    assert not found.criticisms
    assert not found.passed
    assert not found.unseen
    assert found.notes[0].startswith("No differential privacy found: nothing in 1 file")


def test_compiled_modules_are_told(tmp_path: Path) -> None:
    for name in ("client.py", "core.so", "late.pyc", "__pycache__/client.cpython-311.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    told = ("core.so, late.pyc cannot be read: compiled code",)
    assert read_app_files(tmp_path).unread == told


def test_code_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    app = tmp_path / "app"
    app.mkdir()
    (app / "client.py").write_text(f"{PRIVATE}open({str(mark)!r}, 'w')\n")
    diagnose_source(app)
    assert not mark.exists()


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    (tmp_path / "outside.py").write_text(PRIVATE)
    (app / "client.py").write_text(PRIVATE)
    (app / "broken.py").write_text("def f(:\n")
    (app / "deep.py").write_text(f"x = {'(' * 5000}1{')' * 5000}\n")
    (app / "wide.py").write_text(f"x = {'-' * 3000}1\ny = {'1+' * 3000}1\n")
    (app / "link.py").symlink_to(tmp_path / "outside.py")
    why = "\n".join(one.why for one in diagnose_source(app).unseen)
    assert "broken.py, line 1 is no Python" in why
    assert "deep.py" in why
    assert "link.py was not read" in why


def test_a_folder_without_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="has no Python files"):
        diagnose_source(tmp_path)


def test_names_of_rules_are_those_of_their_files() -> None:
    for rule in source_rules():
        assert type(rule).__module__.endswith(rule.name.replace("-", "_"))


def test_a_folder_may_have_the_name_of_a_library_or_import_itself(tmp_path: Path) -> None:
    for name in ("opacus", "app"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "client.py").write_text(f"from {name}.engines import engine\n")
        (folder / "engines.py").write_text(PRIVATE)
        found = diagnose_source(folder)
        assert [one.rule.id for one in found.criticisms] == ["insecure-generator"]
