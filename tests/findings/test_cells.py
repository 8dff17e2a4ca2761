"""Finished cells are kept to the last bit, and damaged ones refused."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.errors import OutputError
from overheard.core.parties import SERVER, client
from overheard.core.scorer import Score
from overheard.findings.cells import RESULT, CellResult, CellStore
from overheard.findings.finding import Cell, Finding, Refusal

CELL = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
SCORE = Score("l1", 0.1 + 0.2, "lower", {"uniform": 1 / 3}, {})
FINDING = Finding(CELL, client(0), (1 / 3, 2 / 3), (0.0, 1.0), (SCORE,))
BOUNDED = replace(FINDING, low=(0.1, 1 / 3), high=(0.4, 2 / 3))
CHOSEN = replace(
    FINDING, candidates=("u017", "Zoë <b>"), none_of_them=0.25, true_user="u\u202e017"
)
RESULT_OF_CELL = CellResult(
    CELL, (FINDING, BOUNDED, CHOSEN), (Refusal(CELL, client(1), ("updates",)),)
)


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_what_was_kept_is_loaded_the_same(tmp_path: Path):
    store = CellStore(tmp_path / "cells")
    assert store.load(CELL) is None
    store.save(RESULT_OF_CELL)
    assert store.load(CELL) == RESULT_OF_CELL


def test_a_cell_that_differs_in_anything_is_another(tmp_path: Path):
    store = CellStore(tmp_path)
    store.save(RESULT_OF_CELL)
    for other in (
        replace(CELL, arm="noise"),
        replace(CELL, seed=1),
        replace(CELL, observers=(client(0),)),
        replace(CELL, attack="decaf, about the cohort"),
        replace(CELL, settings="Decaf(steps=1)"),
        replace(CELL, rounds=(0,)),
        replace(CELL, is_control=True),
    ):
        assert store.load(other) is None


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False), max_size=5), st.text(max_size=20))
def test_every_figure_comes_back_to_the_last_bit(figures: list[float], name: str):
    scores = tuple(Score(name, figure, "higher", {name: figure}, {}) for figure in figures)
    kept = CellResult(CELL, (replace(FINDING, claimed=tuple(figures), scores=scores),), ())
    back = RESULT.validate_json(RESULT.dump_json(kept))
    assert back == kept
    signs = [math.copysign(1, figure) for figure in back.findings[0].claimed]
    assert signs == [math.copysign(1, figure) for figure in figures]


def test_a_figure_that_is_no_number_does_not_make_the_cell_unreadable():
    kept = CellResult(CELL, (replace(FINDING, claimed=(math.nan,)),), ())
    assert math.isnan(RESULT.validate_json(RESULT.dump_json(kept)).findings[0].claimed[0])


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"{}", b"\xff", b'{"cell": 3}'])
def test_a_damaged_cell_is_refused_with_its_place_and_the_mend(tmp_path: Path, content: bytes):
    store = CellStore(tmp_path)
    store.save(RESULT_OF_CELL)
    path = only_file(tmp_path)
    path.write_bytes(content)
    with pytest.raises(OutputError, match="delete the file") as refused:
        store.load(CELL)
    assert str(path) in str(refused.value)
    assert path.read_bytes() == content


def test_a_cell_cut_short_or_with_a_changed_type_is_refused(tmp_path: Path):
    store = CellStore(tmp_path)
    store.save(RESULT_OF_CELL)
    path = only_file(tmp_path)
    whole = path.read_bytes()
    for content in (
        whole[:-1],
        whole[: len(whole) // 2],
        whole.replace(b'"seed":0', b'"seed":"0"'),
    ):
        assert content != whole
        path.write_bytes(content)
        with pytest.raises(OutputError, match="not a finished cell"):
            store.load(CELL)


def test_the_file_of_another_cell_is_refused(tmp_path: Path):
    store, other = CellStore(tmp_path / "a"), CellStore(tmp_path / "b")
    store.save(RESULT_OF_CELL)
    moved = replace(CELL, seed=1)
    other.save(CellResult(moved, (), ()))
    only_file(tmp_path / "a").write_bytes(only_file(tmp_path / "b").read_bytes())
    with pytest.raises(OutputError, match="holds another cell"):
        store.load(CELL)
