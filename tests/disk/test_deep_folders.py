"""Folders of others may be nested far deeper than Python's own functions go."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from overheard.core.errors import OutputError
from overheard.disk.folders import remove_folder, walk_folders

DEPTH = 1_200


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which folders are nested, with a file in the innermost one."""
    folder = tmp_path / "deep"
    folder.mkdir()
    # The path of the innermost one is too long to be made at once.
    with monkeypatch.context() as here:
        here.chdir(folder)
        for _ in range(DEPTH):
            os.mkdir("a")
            os.chdir("a")
        Path("file").touch()
    yield folder
    subprocess.run(["rm", "-r", folder], check=False, stderr=subprocess.DEVNULL)


def test_folders_are_walked_at_any_depth(deep: Path):
    found = list(walk_folders(deep))
    assert [names for _, names, _ in found] == [["a"]] * DEPTH + [[]]
    assert found[-1][2] == ["file"]


def test_folders_that_are_taken_from_the_list_and_links_are_left_out(tmp_path: Path):
    for name in ("b/c", "d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path)
    walked = []
    for folder, names, files in walk_folders(tmp_path):
        walked.append((folder.name, files))
        names[:] = [name for name in sorted(names) if name != "c"]
    assert walked == [(tmp_path.name, ["link"]), ("b", []), ("d", [])]


def test_what_is_nested_too_deeply_is_removed_or_the_command_that_does_is_named(deep: Path):
    # From 3.13 on, Python removes them.
    said = ""
    try:
        remove_folder(deep, inside=deep.parent)
    except OutputError as error:
        said = str(error)
    assert f"rm -r {deep}" in said or not deep.exists()
