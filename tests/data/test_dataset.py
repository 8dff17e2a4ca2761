import pytest
import torch

from overheard.core.examples import Examples, without_classes
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.task import Task
from overheard.data.dataset import Dataset

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
