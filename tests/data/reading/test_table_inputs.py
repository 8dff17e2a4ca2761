from pathlib import Path

import numpy as np
import pytest

from overheard.core.errors import DataError
from overheard.data.reading.scales import Scale, rescale
from overheard.data.reading.table_inputs import (
    InputSettings,
    TableInputs,
    encode_inputs,
    find_inputs,
    note_copies_of_labels,
)
from overheard.data.reading.text_table import TextColumn, TextTable

PATH, ROWS = Path("t.csv"), 40
DRAWS = np.random.default_rng(0)
NUMBERS = [f"{one:.3f}" for one in DRAWS.normal(size=ROWS)]


def table(**columns: list[str]) -> TextTable:
    read = {}
    for name, cells in columns.items():
        texts = tuple(dict.fromkeys(cells))
        read[name] = TextColumn(np.array([texts.index(cell) for cell in cells]), texts)
    return TextTable(read, len(next(iter(columns.values()))), ())


def found(cells: list[str], name: str = "x", **settings: object) -> TableInputs:
    return find_inputs(PATH, table(**{name: cells}), (), InputSettings(**settings))


def encoded(
    cells: list[str], scale: Scale = "as_written", **settings: object
) -> list[list[float]]:
    inputs = found(cells, **settings)
    rows: list[list[float]] = encode_inputs(PATH, inputs, np.ones(len(cells), np.bool_), scale)[
        0
    ].tolist()
    return rows


@pytest.mark.parametrize(
    ("name", "cells", "reason"),
    [
        ("pid", [f"P-{n}" for n in range(ROWS)], "names rows"),
        ("x", [str(n) for n in DRAWS.permutation(ROWS)], "count the rows"),
        ("x", [str(3 * n * n) for n in range(ROWS)], "count the rows"),
        ("patientId", [str(n) for n in DRAWS.permutation(9000)[:ROWS]], "holds ids"),
        ("Unnamed: 0", [str(n) for n in DRAWS.permutation(9000)[:ROWS]], "stored index"),
        ("x", ["", "NA"] * (ROWS // 2), "is empty"),
    ],
)
def test_leaves_out_what_names_or_counts_rows_and_says_so(
    name: str, cells: list[str], reason: str
) -> None:
    inputs = found(cells, name)
    assert not inputs.columns
    assert f"Left out: column {name!r}" in inputs.notes[0]
    assert reason in inputs.notes[0]
    if reason != "is empty" and name != "pid":
        assert len(found(cells, name, numbers=(name,)).columns) == 1


def test_keeps_measurements_and_whole_numbers_that_are_no_ids() -> None:
    assert len(found(NUMBERS).columns) == 1
    income = found([str(n) for n in DRAWS.permutation(9000)[:ROWS]])
    assert len(income.columns) == 1
    assert "if these are ids, set left_out" in income.notes[0]


@pytest.mark.parametrize("odd", ["<0.02", "see note", "12/3"])
def test_refuses_an_odd_cell_by_column_row_and_cell(odd: str) -> None:
    cells = [*NUMBERS[:7], odd, *NUMBERS[8:]]
    with pytest.raises(DataError, match=rf"column 'x' .*'{odd}' in row 8: .*numbers = "):
        found(cells)
    stated = found(cells, numbers=("x",))
    assert "1 cells that are no numbers count as missing" in stated.notes[0]
    assert np.isnan(stated.columns[0].numbers).sum() == 1  # type: ignore[union-attr]
    assert len(encoded(cells, categories=("x",))[0]) == ROWS


def test_missing_numbers_become_the_mean_and_are_counted() -> None:
    assert encoded(["1", "?", "5", "n/a"]) == [[1.0], [3.0], [5.0], [3.0]]
    assert "2 of 4 cells are missing" in found(["1", "?", "5", "n/a"]).notes[0]


def test_few_numbers_among_texts_are_codes() -> None:
    inputs = found(["1", "2", "X", "1"] * 10)
    assert "read as categories, as it holds 'X' in row 3" in inputs.notes[0]
    assert encoded(["1", "2", "X", "1"] * 10)[2] == [0.0, 0.0, 1.0]


def test_reads_decimal_commas_and_refuses_what_could_be_either() -> None:
    assert encoded(["1,5", "2", "1.234,5"]) == [[1.5], [2.0], [1234.5]]
    with pytest.raises(DataError, match="'1,234', whose comma may be a decimal sign"):
        found(["1,234", "5"])
    assert encoded(["1,234", "5"], decimals="dot") == [[1234.0], [5.0]]
    assert encoded(["1,234", "5"], decimals="comma")[1] == [5.0]


def test_truth_values_are_numbers() -> None:
    assert encoded(["True", "False", "true"]) == [[1.0], [0.0], [1.0]]


def test_a_category_of_no_fitted_row_is_all_0() -> None:
    is_fit = np.array([True, True, False])
    rows, read = encode_inputs(PATH, found(["b", "a", "c"]), is_fit, "standardised")
    assert rows.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert (read[0].kind, read[0].inputs) == ("category", 2)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("standardised", [-1.0, 1.0, 0.0]),  # mean 100, deviation 100
        ("as_written", [0.0, 200.0, 100.0]),
        ("by_255", [0.0, 200 / 255, 100 / 255]),
        ("min_max", [0.0, 1.0, 0.5]),
    ],
)
def test_numbers_are_on_the_stated_scale(scale: Scale, expected: list[float]) -> None:
    values = np.array([0.0, 200.0, np.nan])
    assert rescale(values[:, None], values[:2, None], scale)[:, 0] == pytest.approx(expected)


def test_tells_a_column_that_is_the_label_in_other_words() -> None:
    inputs = found(["poor", "rich"] * 20)
    labels = np.array([0, 1] * 20)
    assert "tells the label" in note_copies_of_labels(inputs, labels)[0]
    assert not note_copies_of_labels(inputs, DRAWS.integers(0, 2, 40))


@pytest.mark.parametrize(
    "stated", [{"left_out": ("y",)}, {"numbers": ("x",), "left_out": ("x",)}]
)
def test_refuses_statements_on_other_columns_or_two(stated: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(DataError, match=r"no column 'y'|two meanings"):
        found(NUMBERS, **stated)


def test_tells_a_column_that_becomes_many_inputs() -> None:
    percent = found([f"{number % 15} %" for number in range(ROWS * 3)])
    assert "becomes 15 inputs, one for each text, such as '0 %'" in percent.notes[0]
    assert not found(["north", "south"] * ROWS).notes


@pytest.mark.parametrize("sign", [".", " ", "'", "\u202f"])
def test_reads_signs_between_thousands_and_says_so(sign: str) -> None:
    numbers = [n % 7 * 350_021 for n in range(ROWS)]
    cells = [f"{n:,}".replace(",", sign) for n in numbers]
    assert encoded(cells) == [[float(n)] for n in numbers]
    assert "between thousands" in found(cells).notes[0]


def test_refuses_dots_that_may_stand_between_thousands_and_takes_what_is_stated() -> None:
    cells = [f"{n % 9 * 300 + 7:,}".replace(",", ".") for n in range(ROWS)]
    with pytest.raises(DataError, match=r"decimal sign or stand between thousands"):
        found(cells)
    assert encoded(cells, decimals="comma")[5] == [1507.0]
    assert encoded(cells, decimals="dot")[5] == [pytest.approx(1.507)]
    assert len(found([f"{n / 8 + 1:g}" for n in range(ROWS)]).columns) == 1


def test_names_a_single_decimal_comma_and_an_infinite_cell() -> None:
    assert (
        "in 1 of 40 cells: '1,5' in row 8"
        in found([*NUMBERS[:7], "1,5", *NUMBERS[8:]]).notes[0]
    )
    with pytest.raises(DataError, match="infinity, '1e400' in row 8"):
        found([*NUMBERS[:7], "1e400", *NUMBERS[8:]])


def test_notes_ids_that_return_numbers_of_missing_cells_and_copies_of_labels() -> None:
    ids = found([str(n // 4) for n in range(ROWS)], "patient_id")
    assert "name it as user, or set left_out" in ids.notes[0]
    missing = found(["-999", "-999", *map(str, range(2, ROWS))])
    assert "-999 stands in 2 cells" in missing.notes[0]
    labels = np.arange(ROWS) % 2
    copies = found([f"{label}.0" for label in labels])
    assert "tells the label" in note_copies_of_labels(copies, labels)[0]


def test_reads_numbers_that_a_file_stores_as_categories() -> None:
    column = TextColumn(np.arange(ROWS) % 3, ("1", "2", "3"), is_category=True)
    stored = TextTable({"x": column}, ROWS, ())
    inputs = find_inputs(PATH, stored, (), InputSettings())
    assert encode_inputs(PATH, inputs, np.ones(ROWS, np.bool_), "as_written")[0].shape == (
        40,
        3,
    )
    assert "as the file stores it" in inputs.notes[0]
