"""Cached cells load bit for bit, and damaged files are refused."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.errors import OutputError
from overheard.core.parties import SERVER, client
from overheard.core.scorer import Score
from overheard.findings.finding import Cell, Finding, Refusal
from overheard.findings.result_cache import CELL_RESULT, CellResult, NoResultCache, ResultCache

CELL = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
SCORE = Score("l1", 0.1 + 0.2, "lower", {"uniform": 1 / 3}, {})
FINDING = Finding(CELL, client(0), (1 / 3, 2 / 3), (0.0, 1.0), (SCORE,))
BOUNDED = replace(FINDING, low=(0.1, 1 / 3), high=(0.4, 2 / 3))
DOUBTED = replace(BOUNDED, doubt="noise")
CHOSEN = replace(
    FINDING, candidates=("u017", "Zoë <b>"), none_of_them=0.25, true_user="u\u202e017"
)
RESULT_OF_CELL = CellResult(
    CELL, (FINDING, BOUNDED, DOUBTED, CHOSEN), (Refusal(CELL, client(1), ("updates",)),)
)


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_a_store_that_keeps_nothing_returns_nothing():
    store = NoResultCache()
    store.save(RESULT_OF_CELL)
    assert store.load(CELL) is None


def test_loads_the_result_that_was_saved(tmp_path: Path):
    store = ResultCache(tmp_path / "cells")
    assert store.load(CELL) is None
    store.save(RESULT_OF_CELL)
    assert store.load(CELL) == RESULT_OF_CELL


def test_a_different_cell_is_not_found(tmp_path: Path):
    store = ResultCache(tmp_path)
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
def test_numbers_are_stored_bit_for_bit(figures: list[float], name: str):
    scores = tuple(Score(name, figure, "higher", {name: figure}, {}) for figure in figures)
    stored = CellResult(CELL, (replace(FINDING, claimed=tuple(figures), scores=scores),), ())
    loaded = CELL_RESULT.validate_json(CELL_RESULT.dump_json(stored))
    assert loaded == stored
    signs = [math.copysign(1, figure) for figure in loaded.findings[0].claimed]
    assert signs == [math.copysign(1, figure) for figure in figures]


def test_nan_can_be_stored():
    stored = CellResult(CELL, (replace(FINDING, claimed=(math.nan,)),), ())
    assert math.isnan(
        CELL_RESULT.validate_json(CELL_RESULT.dump_json(stored)).findings[0].claimed[0]
    )


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"{}", b"\xff", b'{"cell": 3}'])
def test_refuses_a_damaged_file_and_says_what_to_do(tmp_path: Path, content: bytes):
    store = ResultCache(tmp_path)
    store.save(RESULT_OF_CELL)
    path = only_file(tmp_path)
    path.write_bytes(content)
    with pytest.raises(OutputError, match="delete the file") as refused:
        store.load(CELL)
    assert str(path) in str(refused.value)
    assert path.read_bytes() == content


def test_refuses_truncated_files_and_wrong_types(tmp_path: Path):
    store = ResultCache(tmp_path)
    store.save(RESULT_OF_CELL)
    path = only_file(tmp_path)
    valid = path.read_bytes()
    for content in (
        valid[:-1],
        valid[: len(valid) // 2],
        valid.replace(b'"seed":0', b'"seed":"0"'),
    ):
        assert content != valid
        path.write_bytes(content)
        with pytest.raises(OutputError, match="not a valid cached result"):
            store.load(CELL)


def test_refuses_the_file_of_another_cell(tmp_path: Path):
    store, other = ResultCache(tmp_path / "a"), ResultCache(tmp_path / "b")
    store.save(RESULT_OF_CELL)
    moved = replace(CELL, seed=1)
    other.save(CellResult(moved, (), ()))
    only_file(tmp_path / "a").write_bytes(only_file(tmp_path / "b").read_bytes())
    with pytest.raises(OutputError, match="contains another cell's result"):
        store.load(CELL)
