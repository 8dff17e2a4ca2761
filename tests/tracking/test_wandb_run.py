"""A run of Weights & Biases is stored in the audit's folder, offline without a login."""

from pathlib import Path

import pytest

from overheard.core.errors import OutputError
from overheard.tracking.logged_audit import read_logged_audit
from overheard.tracking.wandb_run import log_to_wandb, wandb_mode
from tests.tracking.documents import METRICS, audit_folder


@pytest.fixture(autouse=True)
def no_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "wandb-state"))


@pytest.mark.parametrize(
    ("environment", "mode"),
    [
        ({}, "offline"),
        ({"WANDB_API_KEY": "k"}, "online"),
        ({"WANDB_API_KEY": "k", "WANDB_MODE": "offline"}, "offline"),
        ({"WANDB_MODE": "disabled"}, "disabled"),
        ({"WANDB_MODE": ""}, "offline"),
    ],
)
def test_nothing_is_sent_without_a_login(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], mode: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wandb_mode() == mode


def test_refuses_an_unknown_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "ofline")
    with pytest.raises(OutputError, match="set it to one of online, offline"):
        wandb_mode()


@pytest.mark.slow
def test_an_offline_run_is_stored_in_the_folder_of_the_audit(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    folder = audit_folder(tmp_path / "audit")
    stored = Path(log_to_wandb(read_logged_audit(folder), "audits", folder))
    assert stored.is_relative_to(folder)
    assert stored.name.startswith("offline-run-")
    (record,) = stored.glob("run-*.wandb")
    content = record.read_bytes()
    for name in METRICS:
        assert name.encode() in content
    assert b"overheard.findings_sha256" in content
    assert b"report.html" in content
    # Neither packages nor the machine are recorded.
    assert not list(stored.rglob("requirements.txt"))
    assert not list(stored.rglob("wandb-metadata.json"))
