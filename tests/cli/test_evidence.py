"""`overheard evidence` and `overheard verify`: what they write, print and return."""

import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import date
from hashlib import sha256
from pathlib import Path

import pytest

from overheard.report.evidence.digests import write_digests
from overheard.report.evidence.write import write_evidence
from tests.cli.conftest import Command, assert_user_error
from tests.gate.documents import JsonObject, estimate, verdict_row, write_document
from tests.report.evidence.annexes import content


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit with its evidence; copy it before changing it."""
    folder = tmp_path_factory.mktemp("finished") / "audit"
    folder.mkdir()
    (folder / "findings.json").write_text(json.dumps(content()))
    (folder / "report.html").write_text("<p>report</p>")
    (folder / "plan.toml").write_text("seeds = [0]")
    write_digests(folder, ("findings.json", "report.html", "plan.toml"))
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


def change_one_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)


def replace_by_link(path: Path) -> None:
    """Replace a file or a folder by a link to an equal one."""
    path.symlink_to(path.rename(path.parent.parent / f"equal-{path.name}"))


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def list_again(path: Path) -> None:
    """Change a file beside a list, and write its digest to the list."""
    name = "annex.html" if path.parent.name == "evidence" else "report.html"
    (path.parent / name).write_text("<p>nothing leaks</p>")
    listed = [one["name"] for one in json.loads(path.read_text())["files"]]
    write_digests(path.parent, [one for one in listed if "/" not in one])


FILES = ("report.html", "findings.json", "evidence/annex.html", "evidence/officer.toml")
REPLACED = ("report.html", "evidence/annex.pdf", "evidence/digests.json")
ADDED = (
    "notes.txt",
    ".hidden",
    "a\nb",
    "evidence/Annex.pdf",
    "evidence/.hidden",
    "evidence/a\nb",
)
CHANGES: list[tuple[str, Callable[[Path], object], int, int]] = [
    *((name, change_one_byte, 1, 1) for name in FILES),
    *((name, Path.unlink, 1, 1) for name in (*REPLACED, "plan.toml")),
    *((name, replace_by_link, 1, 1) for name in (*REPLACED, "evidence")),
    *((name, replace_by_folder, 1, 1) for name in REPLACED),
    *((name, replace_by_pipe, 1, 1) for name in REPLACED),
    *(
        (name, lambda path: path.rename(path.with_name(path.name.title())), 1, 1)
        for name in FILES
    ),
    ("evidence", shutil.rmtree, 1, 1),
    # Who adds something changes nothing that is listed.
    *((name, lambda path: path.write_text("x"), 0, 1) for name in ADDED),
    *((name, lambda path: path.symlink_to("report.html"), 0, 1) for name in ADDED),
    *((name, Path.mkdir, 0, 1) for name in ADDED),
    # Who lists changed files again is found by the digest of the list alone.
    ("digests.json", list_again, 0, 1),
    ("evidence/digests.json", list_again, 1, 1),
    ("digests.json", lambda path: path.write_text(path.read_text() + " "), 0, 1),
    ("evidence/digests.json", lambda path: path.write_text(path.read_text() + " "), 1, 1),
    ("digests.json", Path.unlink, 2, 2),
    ("digests.json", replace_by_link, 2, 2),
    ("digests.json", replace_by_folder, 2, 2),
    # What Overheard writes beside what it publishes is not compared.
    ("purged.json", lambda path: path.write_text("{}"), 0, 0),
    ("bank", Path.mkdir, 0, 0),
    # A page of such a name, or a link, is no part of it.
    ("bank", lambda path: path.write_text("x"), 0, 1),
    ("bank", lambda path: path.symlink_to("report.html"), 0, 1),
    ("purged.json", lambda path: path.symlink_to("report.html"), 0, 1),
    ("purged.json", Path.mkdir, 0, 1),
]


@pytest.mark.parametrize(("name", "change", "code", "code_if_expected"), CHANGES)
def test_each_change_of_what_is_published_is_found(
    overheard: Command,
    audited: Path,
    name: str,
    change: Callable[[Path], object],
    code: int,
    code_if_expected: int,
) -> None:
    digest = sha256((audited / "digests.json").read_bytes()).hexdigest()
    assert overheard("verify", audited, "--expect", digest, "--quiet").code == 0
    change(audited / name)
    said = overheard("verify", audited)
    assert (said.code, bool(said.err)) == (code, code == 2)
    assert overheard("verify", audited, "--expect", digest).code == code_if_expected
    assert overheard("verify", audited, "--quiet").out == ""
    assert "Not all files" in said.out or code != 1


def test_what_is_no_digest_is_refused(overheard: Command, audited: Path) -> None:
    for wrong in ("", "5f2c...", "f" * 63, "g" * 64):
        said = overheard("verify", audited, "--expect", wrong)
        assert (said.code, said.out) == (2, "")
        assert "64 hexadecimal digits" in said.err


@pytest.mark.slow
def test_evidence_prints_the_digest_that_covers_it(overheard: Command, audited: Path) -> None:
    said = overheard("evidence", audited)
    (line,) = [one for one in said.out.splitlines() if "--expect" in one]
    digest = line.rpartition(" ")[2]
    assert overheard("verify", audited, "--expect", digest).code == 0
    elsewhere = overheard("evidence", audited, "--out", audited.parent / "other").out
    other = re.search("[0-9a-f]{64}", elsewhere)
    assert other is not None
    assert overheard("verify", audited.parent / "other", "--expect", other[0]).code == 0
    assert overheard("verify", audited, "--expect", digest).code == 0


def test_verifies_as_json(overheard: Command, audited: Path) -> None:
    (audited / "report.html").write_text("other")
    said = overheard("verify", audited, "--json")
    assert said.code == 1
    told = json.loads(said.out)
    assert told["is_intact"] is False
    assert told["folders"][0]["files"]["report.html"] == "changed"


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
    assert_user_error(overheard("evidence", tmp_path), "findings.json", "cannot be read")


def test_names_of_files_cannot_control_the_terminal(overheard: Command, audited: Path) -> None:
    (audited / "a\x1b[31mb").write_text("x")
    said = overheard("verify", audited)
    assert said.code == 0
    assert "\x1b[31m" not in said.out
    assert "not listed" in said.out


@pytest.mark.parametrize(
    "verdict",
    [
        verdict_row("no leak above margin", why="too few targets"),
        verdict_row("no leak above margin", gain=estimate(-0.1, 0.3)),
        verdict_row(p_value=7.5),
    ],
)
def test_every_command_refuses_findings_that_contradict_themselves(
    overheard: Command, tmp_path: Path, verdict: JsonObject
) -> None:
    path = write_document(tmp_path, content(verdicts=[verdict]))
    write_digests(tmp_path, (path.name,))
    (tmp_path / "policy.toml").write_text("[[verdicts]]\nname = 'nothing leaks'\n")
    for command in (
        ("check", path, "--policy", tmp_path / "policy.toml"),
        ("check", path, "--like", path),
        ("compare", path, path),
        ("evidence", tmp_path),
    ):
        assert_user_error(overheard(*command), str(path), "not valid findings", "verdicts.0")
    assert not (tmp_path / "evidence").exists()
    # It is as it was written, whatever it says.
    assert overheard("verify", tmp_path).code == 0
