"""An audit is logged to MLflow."""

import os
import re
import warnings
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest

from overheard.core.errors import FindingsError, OutputError
from overheard.tracking.mlflow_run import log_to_mlflow, read_logged_audit
from tests.gate.documents import document, run, summary_row, verdict_row, write_document
from tests.tracking.documents import METRICS, audit_folder


@pytest.fixture(scope="module", autouse=True)
def tracking() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("mlflow.tracking")


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Allow stores of files, which are quicker than a database."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    monkeypatch.chdir(tmp_path)


def test_a_run_has_figures_tags_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracking: ModuleType
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


def test_figures_are_those_of_the_verdict(tmp_path: Path) -> None:
    logged = read_logged_audit(audit_folder(tmp_path))
    assert logged.title == "Two clients"
    assert logged.metrics == pytest.approx(METRICS)
    assert [file.name for file in logged.files] == ["report.html", "findings.json"]
    assert logged.tags == {
        "overheard.subject": "digits",
        "overheard.findings_sha256": sha256(
            (tmp_path / "findings.json").read_bytes()
        ).hexdigest(),
        "overheard.version.overheard": "0.1.0",
        "overheard.verdicts.leaks": "1",
    }


def test_hostile_names_are_made_plain_and_stay_apart(tmp_path: Path) -> None:
    arms = ["../a\n", "../a\t", "x" * 500]
    content = document(
        *(summary_row(arm=arm) for arm in arms),
        arms=[run(arm) for arm in arms],
        verdicts=[verdict_row(arm=arm) for arm in arms],
    )
    write_document(tmp_path, content)
    logged = read_logged_audit(tmp_path)
    assert len(logged.metrics) == 4 * len(arms)
    for name in logged.metrics:
        assert re.fullmatch(r"[\w.\- /]{1,250}", name)
        assert "//" not in name
        assert not {"", ".", ".."} & set(name.split("/"))


def test_unknown_figures_are_left_out(tmp_path: Path) -> None:
    unmeasured = verdict_row("unmeasured", None, gain=None)
    write_document(tmp_path, document(verdicts=[unmeasured]))
    logged = read_logged_audit(tmp_path)
    assert logged.metrics == {}
    assert logged.tags["overheard.verdicts.unmeasured"] == "1"


def test_refuses_a_folder_without_findings(tmp_path: Path) -> None:
    with pytest.raises(FindingsError, match="cannot be read"):
        read_logged_audit(tmp_path)
