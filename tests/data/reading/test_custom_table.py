from pathlib import Path

import pandas as pd
import pytest

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.data.reading.custom_table import TableColumns, TableSettings, load_table
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


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (TableColumns("ill", time="day"), "no column 'day'"),
        (TableColumns("ill", time="ward"), "'a', which is not a date"),
        (TableColumns("ill", user="who", attributes=("height",)), "no column 'height'"),
        (TableColumns("ill", user="who", attributes=("who",)), "different columns"),
        (TableColumns("ill", attributes=("ward",)), "name the column of the users as user"),
        (TableColumns("sick"), "no column 'sick'; it has 'age'"),
        (TableColumns("ill", user="owner"), "no column 'owner'"),
        (TableColumns("ill", text="ill"), "different columns"),
        (TableColumns("ill", text="who", user="who"), "different columns"),
    ],
)
def test_refuses_columns_that_do_not_exist_or_do_not_fit(
    tmp_path: Path, columns: TableColumns, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        loaded(tmp_path, columns)


def test_refuses_a_label_column_with_empty_cells_or_one_label(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="empty cells"):
        loaded(tmp_path, TableColumns("ill"), FRAME.assign(ill=[None, "x"] * 10))
    with pytest.raises(DataError, match="1 different labels"):
        loaded(tmp_path, TableColumns("ill"), FRAME.assign(ill=3))


def test_refuses_a_table_with_only_labels(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column left"):
        loaded(tmp_path, TableColumns("ill"), FRAME[["ill"]])


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


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (TableColumns("age", task="regression"), "must hold finite numbers"),
        (TableColumns("far", task="multi_label"), "must hold 0 and 1 alone"),
        (TableColumns("ill", more_labels=("far",)), "more_labels is for the tasks"),
        (TableColumns("same", task="regression"), "the same number"),
        (TableColumns("far", task="regression", more_labels=("gone",)), "no column 'gone'"),
    ],
)
def test_refuses_columns_that_are_no_labels_of_the_task(
    tmp_path: Path, columns: TableColumns, message: str
) -> None:
    frame = FRAME.drop(columns="note").assign(far=range(20), same=1.0)
    with pytest.raises(DataError, match=message):
        loaded(tmp_path, columns, frame)


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
