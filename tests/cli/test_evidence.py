"""`overheard evidence` and `overheard verify`: what they write, print and return."""

import json
import shutil
from datetime import date
from pathlib import Path

import pytest

from overheard.report.evidence.digests import write_digests
from overheard.report.evidence.write import write_evidence
from tests.cli.conftest import Command, assert_user_error
from tests.report.evidence.annexes import content


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit with its evidence; copy it before changing it."""
    folder = tmp_path_factory.mktemp("finished") / "audit"
    folder.mkdir()
    (folder / "findings.json").write_text(json.dumps(content()))
    (folder / "report.html").write_text("<p>report</p>")
    write_digests(folder, ("findings.json", "report.html"))
    write_evidence(folder, folder / "evidence", date(2026, 11, 22))
    return folder


@pytest.fixture
def audited(finished: Path, tmp_path: Path) -> Path:
    """A copy of the folder of an audit with its evidence."""
    return shutil.copytree(finished, tmp_path / "audit")


@pytest.mark.slow
def test_writes_the_annex_and_says_what_is_to_be_filled_in(
    overheard: Command, audited: Path
) -> None:
    said = overheard("evidence", audited, "--out", audited / "other")
    assert (said.code, said.err) == (0, "")
    assert (audited / "other" / "annex.pdf").is_file()
    assert "To be filled in" in said.out
    assert "Residual risk" in said.out
    assert "annex.pdf" in said.out


@pytest.mark.slow
def test_verifies_an_audit_with_its_evidence(overheard: Command, audited: Path) -> None:
    said = overheard("verify", audited)
    assert (said.code, said.err) == (0, "")
    for name in ("findings.json", "report.html", "annex.pdf", "officer.toml"):
        assert f"as written  {name}" in said.out
    assert "All listed files are as they were written." in said.out


@pytest.mark.parametrize("name", ["report.html", "evidence/annex.html"])
def test_one_changed_byte_is_found(overheard: Command, audited: Path, name: str) -> None:
    path = audited / name
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)
    said = overheard("verify", audited)
    assert said.code == 1
    assert f"changed     {path.name}" in said.out
    assert "Not all files are as they were written." in said.out
    assert overheard("verify", audited, "--quiet").out == ""


def test_verifies_as_json(overheard: Command, audited: Path) -> None:
    (audited / "report.html").write_text("other")
    said = overheard("verify", audited, "--json")
    assert said.code == 1
    told = json.loads(said.out)
    assert told["is_intact"] is False
    assert told["folders"][0]["files"]["report.html"] == "changed"


def test_a_missing_file_is_found(overheard: Command, audited: Path) -> None:
    (audited / "report.html").unlink()
    said = overheard("verify", audited)
    assert said.code == 1
    assert "missing     report.html" in said.out


def test_a_changed_list_is_found_by_its_digest(overheard: Command, audited: Path) -> None:
    first = overheard("verify", audited).out.splitlines()[0]
    digest = first.rpartition(" ")[2]
    assert overheard("verify", audited, "--expect", digest.upper()).code == 0
    (audited / "report.html").write_text("<p>nothing leaks</p>")
    write_digests(audited, ("findings.json", "report.html"))
    assert overheard("verify", audited).code == 0
    said = overheard("verify", audited, "--expect", digest)
    assert said.code == 1
    assert "not the expected one" in said.out


def test_errors_say_what_to_do(overheard: Command, tmp_path: Path) -> None:
    assert_user_error(overheard("verify", tmp_path), "digests.json", "name the folder")
    assert_user_error(overheard("evidence", tmp_path), "findings.json", "overheard audit")


def test_names_of_files_cannot_control_the_terminal(overheard: Command, audited: Path) -> None:
    (audited / "a\x1b[31mb").write_text("x")
    said = overheard("verify", audited)
    assert said.code == 0
    assert "\x1b[31m" not in said.out
    assert "not listed" in said.out
