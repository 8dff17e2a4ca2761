"""Evidence is written completely, only on untouched findings, and keeps the officer's words."""

import json
import shutil
from datetime import date
from pathlib import Path

import pytest

from overheard.core.errors import FindingsError, OutputError, PlanError
from overheard.report.evidence.digests import check_folder, write_digests
from overheard.report.evidence.write import WrittenEvidence, write_evidence
from tests.report.evidence.annexes import content

DAY = date(2026, 11, 22)

WRITTEN = {
    "annex.html",
    "annex.pdf",
    "digests.json",
    "officer.toml",
    "ro-crate-metadata.json",
}


def make_audit(folder: Path) -> Path:
    """Write findings and their digests."""
    folder.mkdir()
    (folder / "findings.json").write_text(json.dumps(content()))
    write_digests(folder, ("findings.json",))
    return folder


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """A folder with findings and their digests."""
    return make_audit(tmp_path / "audit")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> WrittenEvidence:
    """Evidence that was written for the first time; copy it before changing it."""
    folder = tmp_path_factory.mktemp("first")
    return write_evidence(make_audit(folder / "audit"), folder / "new" / "evidence", DAY)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_writes_every_file_with_its_digest(first: WrittenEvidence) -> None:
    assert set(contents(first.folder)) == WRITTEN
    checked = check_folder(first.folder)
    assert {one.name for one in checked.files} == WRITTEN - {"digests.json"}
    assert checked.is_as_written
    assert "Residual risk" in first.unstated
    assert "Contact" not in first.unstated  # the plan states it
    audited = first.folder.parent.parent / "audit"
    (findings,) = check_folder(audited).files
    assert findings.sha256 in (first.folder / "annex.html").read_text()
    assert first.sha256 == checked.sha256


@pytest.mark.slow
def test_the_officers_words_are_kept_and_printed(
    audit: Path, first: WrittenEvidence, tmp_path: Path
) -> None:
    out = shutil.copytree(first.folder, tmp_path / "evidence")
    own = (out / "officer.toml").read_text().replace('"""\n"""', '"""\nLow, I think.\n"""', 1)
    (out / "officer.toml").write_text(own)
    assert check_folder(out).state_of("officer.toml") == "changed"
    written = write_evidence(audit, out, DAY)
    assert (out / "officer.toml").read_text() == own
    assert "Low, I think." in (out / "annex.html").read_text()
    assert "Residual risk" not in written.unstated
    assert check_folder(out).is_as_written


@pytest.mark.slow
def test_the_same_audit_and_day_give_the_same_bytes(
    audit: Path, first: WrittenEvidence, tmp_path: Path
) -> None:
    write_evidence(audit, tmp_path / "again", DAY)
    assert contents(tmp_path / "again") == contents(first.folder)


@pytest.mark.parametrize(
    ("name", "state"), [("findings.json", "changed"), ("a.csv", "missing")]
)
def test_refuses_an_audit_with_a_changed_file(
    audit: Path, name: str, state: str, tmp_path: Path
) -> None:
    (audit / "a.csv").touch()
    write_digests(audit, ("findings.json", "a.csv"))
    text = (audit / "findings.json").read_text()
    if state == "missing":
        (audit / name).unlink()
    else:
        (audit / name).write_text(text.replace('"leaks"', '"inconclusive"'))
    with pytest.raises(FindingsError, match=rf"{name}: was changed after.*\(state: {state}\)"):
        write_evidence(audit, tmp_path / "out", DAY)
    assert not (tmp_path / "out").exists()


def test_refuses_an_audit_without_a_list_of_digests(audit: Path, tmp_path: Path) -> None:
    (audit / "digests.json").unlink()
    with pytest.raises(OutputError, match=r"digests\.json: there is no such file"):
        write_evidence(audit, tmp_path / "out", DAY)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_evidence_inside_an_audit_is_listed_there_while_its_findings_stay(
    audit: Path, first: WrittenEvidence
) -> None:
    def states() -> dict[str, str]:
        return {one.name: one.state for one in check_folder(audit).files}

    shutil.copytree(first.folder, audit / "evidence")
    written = write_evidence(audit, audit / "evidence", DAY)
    listed = {"findings.json": "as written", "evidence/digests.json": "as written"}
    assert states() == listed
    assert written.sha256 == check_folder(audit).sha256
    write_digests(audit, ("findings.json",))
    assert states() == listed
    (audit / "findings.json").write_text("{}")
    write_digests(audit, ("findings.json",))
    assert states() == {"findings.json": "as written", "evidence": "not listed"}


def test_refuses_a_folder_with_other_files(audit: Path, tmp_path: Path) -> None:
    before = contents(audit)
    with pytest.raises(OutputError, match="neither empty nor a folder of evidence"):
        write_evidence(audit, audit, DAY)
    assert contents(audit) == before
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="choose another folder"):
        write_evidence(audit, tmp_path / "file", DAY)


def test_refuses_a_folder_without_findings(tmp_path: Path) -> None:
    with pytest.raises(FindingsError, match=r"findings\.json"):
        write_evidence(tmp_path, tmp_path / "out", DAY)
    assert not (tmp_path / "out").exists()


def test_names_the_mistake_in_the_officers_file(audit: Path, tmp_path: Path) -> None:
    (tmp_path / "officer.toml").write_text("rest_risk = 'low'")
    with pytest.raises(PlanError, match="rest_risk"):
        write_evidence(audit, tmp_path, DAY)
    assert not (tmp_path / "annex.html").exists()
