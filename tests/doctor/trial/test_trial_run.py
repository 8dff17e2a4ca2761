"""How an app would run is read, and its code is compared before it runs."""

import os
import sys
from pathlib import Path

import pytest

from overheard.core.errors import PlanError
from overheard.doctor.source.files import digest_files, read_app_files
from overheard.doctor.trial.child import run_app
from overheard.doctor.trial.request import TrialRequest
from overheard.doctor.trial.trial_run import commit_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "files",
    [
        {"HEAD": f"{COMMIT}\n"},
        {"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{COMMIT}\n"},
        {"HEAD": "ref: refs/heads/main\n", "packed-refs": f"# x\n{COMMIT} refs/heads/main\n"},
    ],
)
def test_reads_the_commit_of_a_folder_without_git(
    tmp_path: Path, files: dict[str, str]
) -> None:
    for name, text in files.items():
        path = tmp_path / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "app").mkdir()
    assert commit_of(tmp_path / "app") == COMMIT


@pytest.mark.parametrize(
    "head", ["ref: ../../secret\n", "ref: refs/../../../secret\n", "x" * 40, "", "\x1b[31m"]
)
def test_other_content_is_no_commit(tmp_path: Path, head: str) -> None:
    (tmp_path / "secret").write_text(COMMIT)
    (tmp_path / "app" / ".git").mkdir(parents=True)
    (tmp_path / "app" / ".git" / "HEAD").write_text(head)
    assert commit_of(tmp_path / "app") == ""


def test_code_that_changed_meanwhile_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("open('ran', 'w')\n")
    request = TrialRequest(
        tmp_path, "0" * 64, "server:app", "server:app", {}, 2, tmp_path / "recording"
    )
    before = os.getcwd(), list(sys.path)
    with pytest.raises(PlanError, match="changed after it was described"):
        run_app(request)
    assert (os.getcwd(), sys.path) == before
    assert not (tmp_path / "ran").exists()


def test_no_component_from_elsewhere_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client.py").write_text("app = None\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "path_hooks", [*sys.path_hooks])
    digest = digest_files(read_app_files(tmp_path))
    request = TrialRequest(
        tmp_path, digest, "json.tool:main", "client:app", {}, 2, tmp_path / "recording"
    )
    with pytest.raises(PlanError, match=r"json\.tool:main is also installed, in .*json, and"):
        run_app(request)
