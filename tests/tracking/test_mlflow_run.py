"""A run in a local MLflow store has the figures, tags and files of the audit."""

import os
import warnings
from pathlib import Path

import pytest

from overheard.core.errors import OutputError
from overheard.tracking.mlflow_run import log_to_mlflow, read_logged_audit
from tests.tracking.documents import METRICS, audit_folder

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tracking = pytest.importorskip("mlflow.tracking")


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Allow stores of files, which are quicker than a database."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    monkeypatch.chdir(tmp_path)


def test_a_run_has_figures_tags_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, store = audit_folder(tmp_path / "audit"), (tmp_path / "store").as_uri()
    logged = read_logged_audit(folder)
    client = tracking.MlflowClient(tracking_uri=store)
    run = client.get_run(log_to_mlflow(logged, store, folder))
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "Two clients"
    assert run.data.metrics == pytest.approx(METRICS)
    assert logged.tags.items() <= run.data.tags.items()
    names = {one.path for one in client.list_artifacts(run.info.run_id)}
    assert names == {"report.html", "findings.json"}
    # Another audit is another run of the same experiment, also if settings name the store.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    other = client.get_run(log_to_mlflow(logged, "default", folder))
    assert other.info.experiment_id == run.info.experiment_id
    assert other.info.run_id != run.info.run_id


def test_tells_that_the_audit_is_complete_if_the_store_fails(tmp_path: Path) -> None:
    folder = audit_folder(tmp_path / "audit")
    (tmp_path / "file").write_text("")
    store = (tmp_path / "file" / "store").as_uri()
    with pytest.raises(OutputError, match="is complete, but MLflow did not store it"):
        log_to_mlflow(read_logged_audit(folder), store, folder)


def test_no_usage_statistics_are_sent_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY")
    folder = audit_folder(tmp_path / "audit")
    log_to_mlflow(read_logged_audit(folder), (tmp_path / "store").as_uri(), folder)
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
