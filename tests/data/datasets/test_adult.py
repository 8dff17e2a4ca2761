import gzip
from pathlib import Path

import pytest

from overheard.core.errors import DataError
from overheard.data.datasets.adult import COLUMNS, Adult

ROW = "39, {work}, 77516, Bachelors, 13, Never, Clerk, Single, White, {sex}, 0, 0, 40, {land}, "

TRAIN = (
    ROW.format(work="State-gov", sex="Male", land="Cuba") + "<=50K\n",
    ROW.format(work="?", sex="Female", land="Peru") + ">50K\n",
)

TEST = (
    "|1x3 Cross validator\n",
    ROW.format(work="Private", sex="Male", land="Peru") + ">50K.\n",
)


def write_published_files(folder: Path, train: str, test: str) -> None:
    (folder / "adult").mkdir(parents=True)
    (folder / "adult" / "adult.data").write_text(train)
    (folder / "adult" / "adult.test").write_text(test)


@pytest.mark.usefixtures("offline")
def test_reads_the_files_of_uci(tmp_path: Path) -> None:
    write_published_files(tmp_path, "".join(TRAIN) + "\n", "".join(TEST))
    dataset = Adult().load(tmp_path)
    assert dataset.train.labels.tolist() == [0, 1]
    assert dataset.test.labels.tolist() == [1]
    # 6 columns of numbers, 2 categories each of work (? and State-gov), sex and land, and 1
    # each of education, marital status, occupation, relationship and race.
    assert dataset.task.shape == (6 + 2 * 3 + 5,)
    # Columns: age, work: ?, work: State-gov, ... "Private" is in neither.
    assert dataset.train.inputs[:, 1:3].tolist() == [[0, 1], [1, 0]]
    assert dataset.test.inputs[:, 1:3].tolist() == [[0, 0]]


@pytest.mark.usefixtures("offline")
def test_packed_tables_and_the_files_of_uci_give_the_same(tmp_path: Path) -> None:
    write_published_files(tmp_path / "uci", "".join(TRAIN), "".join(TEST))
    packed = tmp_path / "packed" / "adult"
    packed.mkdir(parents=True)
    header = ",".join((*COLUMNS, "income")) + "\n"
    for name, lines in (("train", TRAIN), ("test", TEST[1:])):
        text = header + "".join(lines).replace(", ", ",").replace(".\n", "\n")
        (packed / f"adult_{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    from_uci, from_tables = Adult().load(tmp_path / "uci"), Adult().load(tmp_path / "packed")
    assert from_uci.train.inputs.equal(from_tables.train.inputs)
    assert from_uci.test.inputs.equal(from_tables.test.inputs)


@pytest.mark.usefixtures("offline")
def test_refuses_damaged_files(tmp_path: Path) -> None:
    write_published_files(tmp_path, TRAIN[0].replace("<=50K", "rich"), "".join(TEST))
    with pytest.raises(DataError, match=r"adult\.data: column 'income' must be"):
        Adult().load(tmp_path)
    (tmp_path / "adult" / "adult.data").write_text("".join(TRAIN))
    (tmp_path / "adult" / "adult.test").write_text(TEST[0] + TEST[1].replace("39", "old"))
    with pytest.raises(DataError, match="'age' has strings among its numbers"):
        Adult().load(tmp_path)


@pytest.mark.usefixtures("offline")
def test_hours_are_predicted_from_the_income_too(tmp_path: Path) -> None:
    train = "".join(TRAIN).replace("0, 40, Cuba", "0, 20, Cuba")
    write_published_files(tmp_path, train, "".join(TEST))
    income, hours = Adult().load(tmp_path), Adult(task="hours_per_week").load(tmp_path)
    # Hours of 20 and 40 have mean 30 and deviation 10.
    assert hours.train.loss_labels.tolist() == [[-1.0], [1.0]]
    assert hours.test.loss_labels.tolist() == [[1.0]]
    assert hours.task.kind == "regression"
    assert hours.task.shape == income.task.shape  # the income takes the place of the hours
