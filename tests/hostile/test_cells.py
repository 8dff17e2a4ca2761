"""Every hostile input ends in a clean error or does no harm, and so it is at every entry."""

from pathlib import Path
from zlib import crc32

import pytest

from tests.hostile.audit_hook import WatchedCommands
from tests.hostile.cells import Cell, Corpus, cells_of
from tests.hostile.entries import ENTRIES, Entry
from tests.hostile.workspace import build

EVERY = 7
"""One of so many classes of an entry is tried by all tests, and the others nightly."""

CHOSEN = 2
"""Which of them; each class is tried somewhere."""

RARE = ("partial file", "stale data")
"""Classes of few entries, which all tests try."""

MOST = 12
"""Cells of a class at an entry that are tried nightly."""

ROWS = [entry.row for entry in ENTRIES]


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("hostile") / "workspace")


@pytest.fixture(scope="session")
def corpus(
    workspace: Path, tmp_path_factory: pytest.TempPathFactory, commands: WatchedCommands
) -> Corpus:
    return Corpus(workspace, tmp_path_factory.mktemp("cells"), commands)


def share(entry: Entry, workspace: Path) -> list[Cell]:
    """Return a part of an entry's classes, other ones for each entry."""
    return [
        cell
        for cell in cells_of(entry, workspace, 1)
        if crc32(f"{entry.row} {cell.change.kind}".encode()) % EVERY == CHOSEN
        or cell.change.kind in RARE
    ]


def assert_all_end_well(corpus: Corpus, cells: list[Cell]) -> None:
    results = [corpus.run(cell) for cell in cells]
    assert [(one.cell.name, one.problems, one.said) for one in results if one.problems] == []


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=ROWS)
def test_a_share_of_the_cells_ends_well(entry: Entry, corpus: Corpus, workspace: Path) -> None:
    assert_all_end_well(corpus, share(entry, workspace))


@pytest.mark.nightly
@pytest.mark.parametrize("entry", ENTRIES, ids=ROWS)
def test_all_cells_end_well(entry: Entry, corpus: Corpus, workspace: Path) -> None:
    assert_all_end_well(corpus, list(cells_of(entry, workspace, MOST)))


@pytest.mark.nightly
def test_the_share_tries_every_class(workspace: Path) -> None:
    every = {cell.change.kind for entry in ENTRIES for cell in cells_of(entry, workspace, 1)}
    tried = {cell.change.kind for entry in ENTRIES for cell in share(entry, workspace)}
    assert tried == every
