"""One changed byte is found, and a list of digests is not trusted."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import OutputError
from overheard.report.evidence.digests import check_folder, write_digests

NAMES = ("findings.json", "report.html")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "findings.json").write_bytes(b"{}")
    (tmp_path / "report.html").write_bytes(b"<p>Leaks</p>")
    write_digests(tmp_path, (*NAMES, "plan.toml"))
    return tmp_path


def states(folder: Path) -> dict[str, str]:
    return {one.name: one.state for one in check_folder(folder).files}


def test_untouched_files_are_as_written(folder: Path) -> None:
    checked = check_folder(folder)
    assert states(folder) == dict.fromkeys(NAMES, "as written")
    assert checked.is_as_written
    # The digest of two braces, computed by any other tool.
    empty = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert checked.files[0].sha256 == empty
    assert checked.sha256 == sha256((folder / "digests.json").read_bytes()).hexdigest()


@given(place=st.integers(0, 11), bit=st.integers(0, 7))
def test_any_changed_bit_is_found(
    tmp_path_factory: pytest.TempPathFactory, place: int, bit: int
) -> None:
    folder = tmp_path_factory.mktemp("bits")
    content = bytearray(b"<p>Leaks</p>")
    (folder / "report.html").write_bytes(content)
    write_digests(folder, NAMES)
    content[place] ^= 1 << bit
    (folder / "report.html").write_bytes(content)
    assert states(folder) == {"report.html": "changed"}
    assert not check_folder(folder).is_as_written


def test_a_removed_file_is_missing(folder: Path) -> None:
    (folder / "report.html").unlink()
    assert states(folder)["report.html"] == "missing"
    assert not check_folder(folder).is_as_written


def test_a_file_that_was_added_is_named_but_no_change(folder: Path) -> None:
    (folder / "notes.txt").write_text("to be discussed")
    (folder / "runs").mkdir()
    assert states(folder)["notes.txt"] == "not listed"
    assert "runs" not in states(folder)
    assert check_folder(folder).is_as_written


@pytest.mark.parametrize(
    "name",
    [
        *("../findings.json", "/etc/passwd", "a/b", "", ".hidden", "digests.json"),
        *("evidence/annex.pdf", "evidence/../digests.json", "report.html\n"),
    ],
)
def test_a_list_may_name_files_of_its_folder_only(folder: Path, name: str) -> None:
    listed = json.loads((folder / "digests.json").read_text())
    listed["files"][0]["name"] = name
    (folder / "digests.json").write_text(json.dumps(listed))
    with pytest.raises(OutputError, match="not a list of digests"):
        check_folder(folder)


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", '{"format": "overheard digests", "version": 2, "files": []}', "\x00"),
        *("[" * 9999, '{"format": 1, "format": 1}', '{"version": %s}' % ("9" * 5000)),
    ],
)
def test_refuses_a_damaged_list(folder: Path, content: str) -> None:
    (folder / "digests.json").write_text(content)
    with pytest.raises(OutputError, match=r"restore the file|copy it again"):
        check_folder(folder)


def test_refuses_a_list_that_names_a_file_twice(folder: Path) -> None:
    listed = json.loads((folder / "digests.json").read_text())
    listed["files"] *= 2
    (folder / "digests.json").write_text(json.dumps(listed))
    with pytest.raises(OutputError, match="twice"):
        check_folder(folder)


def test_refuses_a_list_that_is_too_large(folder: Path) -> None:
    (folder / "digests.json").write_bytes(b" " * (2**20 + 1))
    with pytest.raises(OutputError, match="--max-unpacked"):
        check_folder(folder)


def test_says_what_to_do_without_a_list(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="name the folder of an audit"):
        check_folder(tmp_path)
