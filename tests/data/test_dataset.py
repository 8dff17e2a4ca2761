"""Data sets, their digests and their summary."""

from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import DataError
from overheard.core.examples import Examples, without_classes
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import client
from overheard.core.task import Task
from overheard.data.content_hash import content_hashes
from overheard.data.dataset import DataReading, Dataset, ReadColumn
from overheard.data.dataset_digest import dataset_digest
from overheard.data.datasets.no_examples import NoExamples
from overheard.data.listed_records import ListedRecords
from overheard.data.splits.iid import Iid
from overheard.data.summary import summarise_data

TASK = Task((2,), ("a", "b"))


def examples(inputs: torch.Tensor, labels: list[int]) -> Examples:
    return Examples(inputs, torch.tensor(labels, dtype=torch.long))


VALID = examples(torch.zeros(3, 2), [0, 1, 0])


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (examples(torch.zeros(0, 2), []), "no examples"),
        (examples(torch.zeros(1, 3), [0]), "shape"),
        (examples(torch.zeros(1, 2).double(), [0]), "float32"),
        (examples(torch.full((1, 2), float("nan")), [0]), "NaN"),
        (examples(torch.zeros(1, 2), [2]), "between 0 and 1"),
        (examples(torch.zeros(1, 2), [-1]), "between 0 and 1"),
        (Examples(torch.zeros(1, 2), torch.tensor([1], dtype=torch.int32)), "int64"),
    ],
)
def test_refuses_examples_that_do_not_fit_the_task(train: Examples, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Dataset(train, VALID, TASK)
    with pytest.raises(ValueError, match=message):
        Dataset(VALID, train, TASK)


def test_refuses_tokens_outside_the_vocabulary() -> None:
    task = Task((2,), ("a", "b"), vocabulary=5)
    valid = examples(torch.tensor([[1, 4]]), [0])
    assert Dataset(valid, valid, task).task.vocabulary == 5
    with pytest.raises(ValueError, match="between 0 and 4"):
        Dataset(valid, examples(torch.tensor([[1, 5]]), [0]), task)


def test_refuses_words_of_another_vocabulary() -> None:
    task = Task((2,), ("a", "b"), vocabulary=5)
    valid = examples(torch.tensor([[1, 4]]), [0])
    assert Dataset(valid, valid, task).known_token_words() == TokenWords(5)
    assert Dataset(VALID, VALID, TASK).known_token_words() is None
    with pytest.raises(ValueError, match="token_words has 4 tokens, but the task has 5"):
        Dataset(valid, valid, task, token_words=TokenWords(4))


@pytest.mark.parametrize(
    ("users", "names"), [([0, 1], ()), ([0, 1, -1], ()), ([0, 1, 2], ("x",))]
)
def test_refuses_users_that_do_not_fit_the_examples(
    users: list[int], names: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="users"):
        Dataset(VALID, VALID, TASK, torch.tensor(users), names)


def numbers(*rows: list[float]) -> Examples:
    return without_classes(torch.zeros(len(rows), 2), torch.tensor(rows))


@pytest.mark.parametrize(
    ("kind", "train", "message"),
    [
        ("regression", VALID, "labels are classes, but the task is regression"),
        ("classification", numbers([0.5, 1.0]), "labels are numbers, but the task is class"),
        ("regression", numbers([0.5]), r"shape \(examples, 2\)"),
        ("regression", numbers([0.5, torch.inf]), "NaN or infinity"),
        ("multi_label", numbers([0.5, 1.0]), "must be 0 or 1"),
        (
            "regression",
            without_classes(torch.zeros(1, 2), torch.zeros(1, 2).double()),
            "float32",
        ),
    ],
)
def test_refuses_labels_of_another_kind(kind: str, train: Examples, message: str) -> None:
    task = Task((2,), ("a", "b"), kind=kind)
    with pytest.raises(ValueError, match=message):
        Dataset(train, train, task)


NUMBERS = torch.arange(4)


EXAMPLES = Examples(torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8]]), NUMBERS % 2)


DATASET = Dataset(
    EXAMPLES,
    EXAMPLES,
    Task((2,), ("no", "yes"), vocabulary=9),
    users=NUMBERS,
    user_names=("a", "b", "c", "d"),
    times=NUMBERS,
    records=NUMBERS,
    embeddings=torch.ones(4, 2),
    attributes={"hand": ("left", "left", "right", "left"), "age": ("1", "2", "3", "4")},
    background=EXAMPLES,
    token_words=TokenWords(9, words=tuple("abcdefgh")),
)


OTHER = replace(EXAMPLES, inputs=EXAMPLES.inputs.flip(0))


CHANGES: dict[str, tuple[object, ...]] = {
    "train": (OTHER, EXAMPLES.take(torch.tensor([0, 1, 3, 2]))),
    "test": (OTHER,),
    "task": (Task((2,), ("yes", "no"), vocabulary=9),),
    "users": (NUMBERS.flip(0), NUMBERS.int()),
    "user_names": (("a", "b", "d", "c"),),
    "times": (NUMBERS + 1, None),
    "records": (NUMBERS.flip(0),),
    "embeddings": (torch.ones(4, 2).double(), torch.ones(4, 2) + 1e-6),
    "attributes": ({"hand": ("left", "right", "right", "left"), "age": ("1", "2", "3", "4")},),
    "background": (OTHER, None),
    "listed": (
        ListedRecords(OTHER, {client(0): (0,)}),
        ListedRecords(EXAMPLES, {client(0): (1,)}),
    ),
    "token_words": (TokenWords(9, words=tuple("abcdefgi")),),
}


def test_equal_content_has_an_equal_digest_however_it_was_read() -> None:
    copied = Examples(EXAMPLES.inputs.clone().t().contiguous().t(), EXAMPLES.labels.clone())
    attributes = dict(reversed(DATASET.attributes.items()))
    other = replace(DATASET, train=copied, attributes=attributes)
    other = replace(other, reading=DataReading(notes=("a note",)))
    assert dataset_digest(other) == dataset_digest(DATASET)


@pytest.mark.parametrize("name", [one.name for one in fields(Dataset) if one.name != "reading"])
def test_any_other_field_changes_the_digest(name: str) -> None:
    for value in CHANGES[name]:
        # What would not fit the rest is left out of the check.
        changed = replace(DATASET, **{name: value})
        assert dataset_digest(changed) != dataset_digest(DATASET), value


def test_what_moves_from_one_field_to_the_next_changes_the_digest() -> None:
    one, other = replace(DATASET, records=None), replace(DATASET, times=None)
    assert dataset_digest(one) != dataset_digest(other)


def test_minus_zero_equals_zero() -> None:
    hashes = content_hashes(torch.tensor([[0.0, 1.0], [-0.0, 1.0]]))
    assert hashes[0] == hashes[1]


@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=1, max_size=20))
def test_different_token_rows_have_different_hashes(rows: list[list[int]]) -> None:
    hashes = content_hashes(torch.tensor(rows)).tolist()
    assert len(set(hashes)) == len({tuple(row) for row in rows})


def test_refuses_a_single_class():
    with pytest.raises(DataError, match="2 classes or more"):
        NoExamples(("a",)).load(None)


def test_a_task_without_classes_has_one_placeholder():
    dataset = NoExamples(("age",), (3,), task="regression").load(None)
    assert (dataset.task.kind, dataset.task.outputs, len(dataset.train)) == ("regression", 1, 1)


INPUTS = torch.tensor([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0], [4.0, 1.0]])


LABELS = torch.tensor([0, 0, 0, 1])


SUMMARISED = Dataset(
    Examples(INPUTS, LABELS),
    Examples(torch.full((1, 2), 9.0), torch.tensor([1])),
    Task((2,), ("cat", "dog")),
)


def said(dataset: Dataset, split: Iid | None = None) -> str:
    return " ".join(summarise_data(dataset, split))


def test_says_rows_inputs_and_classes_with_counts() -> None:
    text = said(SUMMARISED)
    assert "Data: 5 examples, of which 1 are held out." in text
    # Mean (0 + 2 + 0 + 4 + 4 * 1) / 8 = 1.25.
    assert "Inputs: 2 numbers from 0 to 4, mean 1.2, deviation" in text
    assert "Classes: cat (3), dog (2)." in text


def test_says_which_columns_are_inputs_of_which_kind() -> None:
    columns = (ReadColumn("age", "number", 1, (20, 90)), ReadColumn("ward", "category", 1))
    reading = DataReading(columns, "as written", ("Left out: 'id\x1b'.",))
    text = said(replace(SUMMARISED, reading=reading))
    assert "2 from 2 columns: 1 of numbers (age 20 to 90); 1 of categories (ward: 1)" in text
    assert "Numbers are as written." in text
    assert r"Left out: 'id\x1b'." in text


def test_says_how_many_examples_are_copies() -> None:
    # Rows 0 and 2 are the same.
    assert "Copies: 2 of 4 examples" in said(SUMMARISED)
    unique = replace(SUMMARISED, train=Examples(torch.arange(8.0).reshape(4, 2), LABELS))
    assert "Copies" not in said(unique)


def test_says_whether_clients_follow_the_shares_of_the_data() -> None:
    assert "in the shares of the data (balanced = false)" in said(
        SUMMARISED, Iid(balanced=False)
    )
    # 3 of one class and 1 of the other.
    assert "set balanced = false in the split" in said(SUMMARISED, Iid())
    even = replace(SUMMARISED, train=Examples(INPUTS, torch.tensor([0, 0, 1, 1])))
    assert "balanced" not in said(even, Iid())
