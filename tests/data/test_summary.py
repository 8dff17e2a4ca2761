from dataclasses import replace

import torch

from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import DataReading, Dataset, ReadColumn
from overheard.data.splits.iid import Iid
from overheard.data.summary import summarise_data

INPUTS = torch.tensor([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0], [4.0, 1.0]])
LABELS = torch.tensor([0, 0, 0, 1])
DATASET = Dataset(
    Examples(INPUTS, LABELS),
    Examples(torch.full((1, 2), 9.0), torch.tensor([1])),
    Task((2,), ("cat", "dog")),
)


def said(dataset: Dataset, split: Iid | None = None) -> str:
    return " ".join(summarise_data(dataset, split))


def test_says_rows_inputs_and_classes_with_counts() -> None:
    text = said(DATASET)
    assert "Data: 5 examples, of which 1 are held out." in text
    # Mean (0 + 2 + 0 + 4 + 4 * 1) / 8 = 1.25.
    assert "Inputs: 2 numbers from 0 to 4, mean 1.2, deviation" in text
    assert "Classes: cat (3), dog (2)." in text


def test_says_which_columns_are_inputs_of_which_kind() -> None:
    columns = (ReadColumn("age", "number", 1, (20, 90)), ReadColumn("ward", "category", 1))
    reading = DataReading(columns, "as written", ("Left out: 'id\x1b'.",))
    text = said(replace(DATASET, reading=reading))
    assert "2 from 2 columns: 1 of numbers (age 20 to 90); 1 of categories (ward: 1)" in text
    assert "Numbers are as written." in text
    assert r"Left out: 'id\x1b'." in text


def test_says_how_many_examples_are_copies() -> None:
    # Rows 0 and 2 are the same.
    assert "Copies: 2 of 4 examples" in said(DATASET)
    unique = replace(DATASET, train=Examples(torch.arange(8.0).reshape(4, 2), LABELS))
    assert "Copies" not in said(unique)


def test_says_whether_clients_follow_the_shares_of_the_data() -> None:
    assert "in the shares of the data (balanced = false)" in said(DATASET, Iid(balanced=False))
    # 3 of one class and 1 of the other.
    assert "set balanced = false in the split" in said(DATASET, Iid())
    even = replace(DATASET, train=Examples(INPUTS, torch.tensor([0, 0, 1, 1])))
    assert "balanced" not in said(even, Iid())
