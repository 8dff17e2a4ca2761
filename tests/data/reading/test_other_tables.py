"""Tables of other files and of functions give the data set of the same table in text."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pytest
import torch
from openpyxl import Workbook

from overheard.core.errors import DataError
from overheard.data.dataset import Dataset
from overheard.data.reading.custom_data import load_custom_data

if TYPE_CHECKING:
    import datasets
    import flwr_datasets

FRAME = pd.DataFrame(
    {
        "age": [20 + number for number in range(30)],
        "crp": [number / 4 for number in range(30)],
        "label": [("no", "yes")[number % 2] for number in range(30)],
    }
)


def save_sheet(path: Path) -> None:
    book = Workbook()
    for row in (list(FRAME.columns), *FRAME.values.tolist()):
        book.active.append(row)
    book.create_sheet("notes").append(["not read"])
    book.save(path)


def save_arff(path: Path) -> None:
    head = "@relation r\n@attribute age numeric\n@attribute crp numeric\n"
    path.write_text(
        f"{head}@attribute label {{no,yes}}\n@data\n{FRAME.to_csv(index=False, header=False)}"
    )


def save_tabs(path: Path) -> None:
    FRAME.to_csv(path, sep="\t", index=False)


def table() -> pa.Table:
    return pa.Table.from_pandas(FRAME)


def frame() -> pd.DataFrame:
    return FRAME


def hugging_face() -> datasets.Dataset:
    import datasets

    return datasets.Dataset.from_pandas(FRAME).class_encode_column("label")


def federated() -> flwr_datasets.FederatedDataset:
    import flwr_datasets
    from flwr_datasets.partitioner import IidPartitioner

    return flwr_datasets.FederatedDataset(
        dataset="csv",
        partitioners={"train": IidPartitioner(num_partitions=3)},
        data_files="table.csv",
        cache_dir="cache",
    )


def in_text(tmp_path: Path) -> Dataset:
    FRAME.to_csv(tmp_path / "table.csv", index=False)
    return load_custom_data(str(tmp_path / "table.csv"))


def assert_same(found: Dataset, expected: Dataset) -> None:
    assert found.task == expected.task
    assert torch.allclose(found.train.inputs, expected.train.inputs)
    assert torch.equal(found.train.labels, expected.train.labels)


@pytest.mark.parametrize(
    ("suffix", "save"),
    [(".xlsx", save_sheet), (".arff", save_arff), (".tsv", save_tabs), (".data", save_tabs)],
)
def test_a_table_of_another_file_is_that_of_the_same_text(
    tmp_path: Path, suffix: str, save: Callable[[Path], None]
) -> None:
    save(tmp_path / f"table{suffix}")
    found = load_custom_data(str(tmp_path / f"table{suffix}"))
    assert_same(found, in_text(tmp_path))
    if suffix == ".xlsx":
        assert "Of 2 sheets the first, 'Sheet', was read." in found.reading.notes


@pytest.mark.parametrize("name", ["frame", "table", "hugging_face"])
def test_a_table_that_a_function_returns_is_that_of_the_same_text(
    tmp_path: Path, name: str
) -> None:
    assert_same(load_custom_data(f"{__name__}:{name}"), in_text(tmp_path))


# The builder of datasets leaves the file open until it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_partitions_of_flwr_datasets_are_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("table.csv", index=False)
    found = load_custom_data(f"{__name__}:federated")
    assert found.user_names == ("partition 0", "partition 1", "partition 2")
    assert found.users is not None
    assert len(found.train) + len(found.test) == 30


@pytest.mark.parametrize(
    ("suffix", "content", "told"),
    [
        (".xlsx", b"no workbook", "is no .xlsx workbook"),
        (
            ".arff",
            b"@relation r\n@attribute a string\n@data\nx\n",
            "texts and dates are not read",
        ),
        (".arff", b"\xff\xfe", "cannot be read as ARFF"),
    ],
)
def test_damaged_tables_are_refused(
    tmp_path: Path, suffix: str, content: bytes, told: str
) -> None:
    (tmp_path / f"table{suffix}").write_bytes(content)
    with pytest.raises(DataError, match=told):
        load_custom_data(str(tmp_path / f"table{suffix}"))


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "table.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"\0" * 2**27)
    with pytest.raises(DataError, match="--max-unpacked"):
        load_custom_data(str(tmp_path / "table.xlsx"))
