"""A user's own table."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.data.reading.custom_table import TableColumns, TableSettings, load_table
from overheard.data.reading.scales import Scale, rescale
from overheard.data.reading.table_inputs import (
    InputSettings,
    TableInputs,
    encode_inputs,
    find_inputs,
    note_copies_of_labels,
)
from overheard.data.reading.text_table import TextColumn, TextTable
from overheard.data.reading.texts import TextSettings

FRAME = pd.DataFrame(
    {
        "age": ["30", "NA", "50", "40", "20"] * 4,
        "ward": ["a", "b", "NA", "a", "b"] * 4,
        "note": ["cold nose", "warm hands", "cold feet", "warm nose", ""] * 4,
        "who": ["p2", "p1"] * 10,
        "ill": [1, 0] * 10,
    }
)


def loaded(
    tmp_path: Path, columns: TableColumns, frame: pd.DataFrame = FRAME, kind: str = "csv"
) -> Dataset:
    path = tmp_path / f"own.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return load_table(path, columns, TableSettings(texts=TextSettings(10, 4)), Seed(0))


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_numbers_and_categories_become_columns(tmp_path: Path, kind: str) -> None:
    frame = FRAME.drop(columns="note")
    dataset = loaded(tmp_path, TableColumns("ill", user="who"), frame, kind)
    assert (len(dataset.train), len(dataset.test)) == (16, 4)
    # Despite its NA, age is a column of numbers; the wards are a, b and NA.
    assert dataset.task.shape == (4,)
    assert dataset.task.class_names == ("0", "1")
    assert dataset.user_names == ("p1", "p2")
    assert dataset.users is not None
    # p2 is ill in every row, p1 in none.
    assert dataset.users.equal(dataset.train.labels)


def test_a_text_column_becomes_tokens(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, TableColumns("ill", text="note"))
    assert dataset.task.shape == (4,)
    # cold, feet, hands, nose, warm, padding and unknown.
    assert dataset.task.vocabulary == 7


def test_refuses_texts_whose_tokens_take_too_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 20 texts of 4 tokens of 8 bytes take 640 bytes. The table itself takes 553.
    monkeypatch.setenv("OVERHEARD_MAX_UNPACKED", "2500")
    frame = FRAME[["note", "ill"]]
    with pytest.raises(DataError, match=r"as 4 tokens .* takes 640 bytes.*--max-unpacked"):
        loaded(tmp_path, TableColumns("ill", text="note"), frame)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_times_and_attributes_are_read_but_are_no_inputs(tmp_path: Path, kind: str) -> None:
    days = pd.to_datetime([f"2004-08-{31 - place:02}" for place in range(20)])
    frame = FRAME.assign(when=days, sex=["f", "m"] * 10, age=range(20))
    columns = TableColumns("ill", user="who", time="when", attributes=("sex", "ward"))
    with pytest.raises(DataError, match="user 'p2' has several values in column 'ward'"):
        loaded(tmp_path, columns, frame, kind)
    columns = TableColumns("ill", user="who", time="when", attributes=("sex",))
    dataset = loaded(tmp_path, columns, frame.drop(columns=["ward", "note"]), kind)
    # Only age is left as input. It rises from row to row, while the date falls.
    assert dataset.task.shape == (1,)
    assert dataset.times is not None
    assert dataset.times.argsort().equal(dataset.train.inputs[:, 0].argsort(descending=True))
    # p1 is m, p2 is f.
    assert dict(dataset.attributes) == {"sex": ("m", "f")}


LABELS = FRAME.drop(columns="note").assign(far=range(20), same=1.0)


@pytest.mark.parametrize(
    ("columns", "frame", "message"),
    [
        (TableColumns("ill", time="day"), FRAME, "no column 'day'"),
        (TableColumns("ill", time="ward"), FRAME, "'a', which is not a date"),
        (TableColumns("ill", user="who", attributes=("height",)), FRAME, "no column 'height'"),
        (TableColumns("ill", user="who", attributes=("who",)), FRAME, "different columns"),
        (TableColumns("ill", attributes=("ward",)), FRAME, "name the column of the users as"),
        (TableColumns("sick"), FRAME, "no column 'sick'; it has 'age'"),
        (TableColumns("ill", user="owner"), FRAME, "no column 'owner'"),
        (TableColumns("ill", text="ill"), FRAME, "different columns"),
        (TableColumns("ill", text="who", user="who"), FRAME, "different columns"),
        (TableColumns("ill"), FRAME.assign(ill=[None, "x"] * 10), "empty cells"),
        (TableColumns("ill"), FRAME.assign(ill=3), "1 different labels"),
        (TableColumns("ill"), FRAME[["ill"]], "no column left"),
        (TableColumns("age", task="regression"), LABELS, "must hold finite numbers"),
        (TableColumns("far", task="multi_label"), LABELS, "must hold 0 and 1 alone"),
        (TableColumns("ill", more_labels=("far",)), LABELS, "more_labels is for the tasks"),
        (TableColumns("same", task="regression"), LABELS, "the same number"),
        (
            TableColumns("far", task="regression", more_labels=("gone",)),
            LABELS,
            "no column 'gone'",
        ),
    ],
)
def test_refuses_columns_that_do_not_exist_or_do_not_fit(
    tmp_path: Path, columns: TableColumns, frame: pd.DataFrame, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        loaded(tmp_path, columns, frame)


def test_several_labels_are_columns_of_0_and_1(tmp_path: Path) -> None:
    frame = FRAME.drop(columns="note").assign(old=[0, 1, 1, 1, 0] * 4)
    columns = TableColumns("ill", user="who", task="multi_label", more_labels=("old",))
    dataset = loaded(tmp_path, columns, frame)
    assert (dataset.task.kind, dataset.task.class_names) == ("multi_label", ("ill", "old"))
    assert dataset.train.loss_labels.shape == (16, 2)
    assert dataset.task.shape == (4,)  # age and three wards


def test_numbers_to_predict_are_standardised(tmp_path: Path) -> None:
    frame = FRAME.drop(columns="note").assign(days=range(20))
    dataset = loaded(tmp_path, TableColumns("days", user="who", task="regression"), frame)
    rows = dataset.train.loss_labels
    assert float(rows.mean()) == pytest.approx(0, abs=1e-6)
    assert float(rows.std(correction=0)) == pytest.approx(1)
    assert len(dataset.test.loss_labels) == 4


def test_columns_of_names_are_texts_as_written(tmp_path: Path) -> None:
    frame = FRAME.drop(columns="note").assign(who=["01", "1"] * 10, ill=["7.0", "7"] * 10)
    dataset = loaded(tmp_path, TableColumns("ill", user="who"), frame)
    assert dataset.user_names == ("01", "1")
    assert dataset.task.class_names == ("7", "7.0")
    assert "'7', '7.0' are different classes" in " ".join(dataset.reading.notes)


def test_spellings_of_a_label_are_refused_unless_a_person_decides(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    FRAME.drop(columns="note").assign(ill=["a", "b", "a ", "b"] * 5).to_csv(path, index=False)
    with pytest.raises(DataError, match='spellings = "merged"'):
        load_table(path, TableColumns("ill"), TableSettings(), Seed(0))
    merged = load_table(path, TableColumns("ill"), TableSettings(spellings="merged"), Seed(0))
    assert merged.task.class_names == ("a", "b")
    kept = load_table(path, TableColumns("ill"), TableSettings(spellings="kept"), Seed(0))
    assert kept.task.class_names == ("a", "a ", "b")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([f"{n / 100}" for n in range(60)], 'task = "regression"'),
        ([f"{n},5" for n in range(60)], 'task = "regression"'),
        ([str(n) for n in range(60)], 'task = "regression"'),
        ([f"P{n}" for n in range(60)], "names rows and no classes"),
    ],
)
def test_refuses_labels_that_are_no_classes(
    tmp_path: Path, labels: list[str], message: str
) -> None:
    frame = pd.DataFrame({"a": [n % 7 for n in range(60)], "y": labels})
    with pytest.raises(DataError, match=message):
        loaded(tmp_path, TableColumns("y"), frame)


def test_says_what_became_of_each_column(tmp_path: Path) -> None:
    frame = FRAME.drop(columns="note")
    reading = loaded(tmp_path, TableColumns("ill", user="who"), frame).reading
    assert [(one.name, one.kind, one.inputs) for one in reading.columns] == [
        ("age", "number", 1),
        ("ward", "category", 3),
    ]
    assert reading.columns[0].bounds == (20, 50)
    assert reading.scale.startswith("standardised")


def test_tells_that_many_whole_numbers_are_read_as_classes(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [n % 7 for n in range(600)], "y": [n % 25 for n in range(600)]})
    dataset = loaded(tmp_path, TableColumns("y"), frame)
    assert dataset.task.class_names[:3] == ("0", "1", "2")
    assert 'set task = "regression"' in " ".join(dataset.reading.notes)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["0.25", "0.5", "0.75"], 'set task = "regression"'),
        (["nan", "sick", "well"], "'nan' is one of the classes, as written"),
    ],
)
def test_tells_of_labels_that_may_be_no_classes(
    tmp_path: Path, labels: list[str], message: str
) -> None:
    frame = pd.DataFrame({"a": [n % 7 for n in range(60)], "y": labels * 20})
    assert message in " ".join(loaded(tmp_path, TableColumns("y"), frame).reading.notes)


def test_refuses_categories_that_become_too_many_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"a{row % 50},b{row % 60},{row % 2}\n" for row in range(300))
    (tmp_path / "t.csv").write_text(f"a,b,ill\n{rows}")
    # 110 inputs of 300 rows take 132 KB, and a quarter of 400 KB is allowed.
    monkeypatch.setenv("OVERHEARD_MAX_UNPACKED", "400KB")
    with pytest.raises(DataError, match=r"the encoding as 110 inputs takes 132000 bytes"):
        load_table(tmp_path / "t.csv", TableColumns("ill"), TableSettings(), Seed(0))


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
