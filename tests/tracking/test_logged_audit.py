"""Figures, tags and files of an audit have names that MLflow accepts."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

from overheard.core.errors import FindingsError
from overheard.tracking.mlflow_run import read_logged_audit
from tests.gate.documents import document, run, summary_row, verdict_row, write_document
from tests.tracking.documents import METRICS, audit_folder


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
