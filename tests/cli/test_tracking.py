"""`overheard audit --mlflow` refuses early without the package, and logs afterwards."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from overheard.cli import tracking
from overheard.cli.tracking import log_audit, require_mlflow
from overheard.core.errors import OutputError
from tests.cli.conftest import Command
from tests.tracking.documents import audit_folder


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
