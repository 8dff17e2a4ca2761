"""Any stored file that was altered ends an audit with its name, and never changes a result."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.progress import ProgressStep
from overheard.auditing.run import TRUSTED, audit
from overheard.core.errors import AuditError
from overheard.disk.digests import TRUST_VARIABLE
from tests.auditing.conftest import HERE, FinishedAudit
from tests.auditing.plans import TINY, replace_tables

STORED = {
    "claims": "cells/*",
    "a broadcast": "runs/*/transcript/rounds/r0000/*broadcast*",
    "an update": "runs/*/transcript/rounds/r0001/*client-1*",
    "messages": "runs/*/transcript/rounds/r0001/messages.jsonl",
    "the truth": "runs/*/truth.json",
    "the manifest": "runs/*/transcript/manifest.json",
}


def alter(path: Path) -> None:
    """Change a digit of the last number of a text, or the last bit of the numbers."""
    content = bytearray(path.read_bytes())
    places = [place for place, one in enumerate(content) if chr(one).isdigit()]
    place = places[-1] if path.suffix.startswith(".json") else len(content) - 1
    content[place] ^= 1
    path.write_bytes(content)


@pytest.fixture
def home(tiny: FinishedAudit, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny.folder, tmp_path / "tiny"))


@pytest.mark.parametrize("stored", STORED)
def test_an_altered_file_ends_the_audit_with_its_name(
    home: Path, tiny: FinishedAudit, stored: str
) -> None:
    path = sorted(home.glob(STORED[stored]))[0]
    if "transcript/rounds" in str(path):
        shutil.rmtree(home / "cells")  # else nothing reads them
    alter(path)
    with pytest.raises(AuditError, match=f"{path} was altered .*--trust-store"):
        audit(TINY, home, resources=HERE)
    shutil.copy(tiny.folder / path.relative_to(home), path)
    assert audit(TINY, home, resources=HERE) == tiny.audit


def test_a_round_that_was_altered_before_its_run_is_complete_is_named(tmp_path: Path) -> None:
    def stop(step: ProgressStep) -> None:
        if next(tmp_path.glob("runs/*/transcript/rounds/r0000/messages.jsonl"), None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(TINY, tmp_path, resources=HERE, on_step=stop)
    (path,) = tmp_path.glob("runs/*/transcript/rounds/r*/messages.jsonl")
    alter(path)
    with pytest.raises(AuditError, match=f"{path} was altered .*--trust-store"):
        audit(TINY, tmp_path, resources=HERE)


def test_a_store_that_is_trusted_is_read_and_the_audit_says_so(
    home: Path, tiny: FinishedAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sorted(home.glob(STORED["an update"]))[0]
    shutil.rmtree(home / "cells")
    alter(path)
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    found = audit(TINY, home, resources=HERE)
    assert found.findings != tiny.audit.findings
    assert found.data_warnings == (*tiny.audit.data_warnings, TRUSTED)
    # Its claims are not those of an audit that compares.
    monkeypatch.delenv(TRUST_VARIABLE)
    with pytest.raises(AuditError, match="was altered"):
        audit(TINY, home, resources=HERE)
    shutil.copy(tiny.folder / path.relative_to(home), path)
    assert audit(TINY, home, resources=HERE) == tiny.audit


def other_content(path: Path) -> None:
    path.write_bytes(path.read_bytes())


@pytest.mark.parametrize("touch", [Path.touch, other_content])
def test_files_with_another_time_are_used(
    home: Path, tiny: FinishedAudit, touch: Callable[[Path], None]
) -> None:
    for path in home.rglob("*"):
        if path.is_file():
            touch(path)
    before = {path: path.stat().st_mtime_ns for path in home.glob("cells/*")}
    assert audit(TINY, home, resources=HERE) == tiny.audit
    assert {path: path.stat().st_mtime_ns for path in home.glob("cells/*")} == before


def test_claims_of_an_audit_of_other_data_are_made_anew(
    home: Path, tiny: FinishedAudit, tmp_path: Path
) -> None:
    data = TINY.data.model_copy(update={"examples": (31, 40)})
    audit(replace_tables(TINY, data=data), tmp_path / "other", resources=HERE)
    for path in (home / "cells").iterdir():
        # Its name is that of the cell, which is the same in both audits.
        shutil.copy(tmp_path / "other" / "cells" / path.name, path)
    found = audit(TINY, home, resources=HERE)
    assert replace(found, made_on="") == replace(tiny.audit, made_on="")
