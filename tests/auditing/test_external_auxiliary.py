"""Auxiliary examples from another data set have the same form and are not audited ones."""

from dataclasses import replace

import pytest
import torch

from overheard.auditing.external_auxiliary import draw_external_auxiliary
from overheard.core.errors import PlanError
from overheard.core.examples import Examples, without_classes
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import AuxiliarySize

TASK = Task((2,), ("cat", "dog"))


def numbered(numbers: list[int]) -> Examples:
    """Each input is its number twice; its label says whether the number is odd."""
    column = torch.tensor(numbers)
    return Examples(column[:, None].repeat(1, 2).float(), column % 2)


AUDITED = Dataset(numbered([0, 1, 2, 3]), numbered([4, 5]), TASK)
OTHER = Dataset(numbered([0, 1, 4, 5, 10, 11, 12, 13, 15]), numbered([20]), TASK)
"""Four of its examples are in the audited data; the others are 10 and 12, and 11, 13, 15."""


def draw(size: AuxiliarySize, seed: int = 0) -> Examples:
    return draw_external_auxiliary(OTHER, AUDITED, size, Seed(seed), "auxiliary_from here")


def numbers(examples: Examples) -> list[int]:
    return sorted(examples.inputs[:, 0].int().tolist())


def test_draws_the_requested_number_per_class_and_no_audited_example():
    examples = draw(AuxiliarySize(per_class=2))
    assert examples.label_counts(2).tolist() == [2, 2]
    assert {10, 12} < set(numbers(examples)) < {10, 11, 12, 13, 15}


def test_draws_a_total_with_the_label_shares_of_the_source():
    # 4 even and 5 odd among its 9; of 2, one each
    assert draw(AuxiliarySize(total=2)).label_counts(2).tolist() == [1, 1]


def test_draws_other_examples_under_another_seed():
    assert {tuple(numbers(draw(AuxiliarySize(per_class=1), n))) for n in range(20)} == {
        (even, odd) if even < odd else (odd, even) for even in (10, 12) for odd in (11, 13, 15)
    }


def test_says_which_label_has_too_few_examples_and_what_to_do():
    with pytest.raises(
        PlanError,
        match="auxiliary_from here: 3 examples with label 'cat' are needed, but the data set "
        "has only 2 that are not in the audited data: ask for fewer",
    ):
        draw(AuxiliarySize(per_class=3))


@pytest.mark.parametrize(
    "task",
    [Task((2,), ("cat", "dog", "cow")), Task((2,), ("cat", "dog"), vocabulary=9)],
    ids=["classes", "vocabulary"],
)
def test_refuses_a_data_set_of_another_form(task: Task):
    inputs = OTHER.train.inputs
    part = Examples(inputs if task.vocabulary is None else inputs.long() % 9,
                    OTHER.train.labels)  # fmt: skip
    other = replace(OTHER, train=part, test=part, task=task)
    with pytest.raises(
        PlanError, match=r"auxiliary_from here: has .*a data set of the same form"
    ):
        draw_external_auxiliary(
            other, AUDITED, AuxiliarySize(per_class=1), Seed(0), "auxiliary_from here"
        )


def test_refuses_a_data_set_of_another_kind():
    rows = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    several = without_classes(torch.tensor([[7.0, 7.0], [8.0, 8.0]]), rows)
    other = Dataset(several, several, Task((2,), ("cat", "dog"), kind="multi_label"))
    with pytest.raises(PlanError, match=r"2 labels and .* have .* 2 classes"):
        draw_external_auxiliary(other, AUDITED, AuxiliarySize(total=1), Seed(0), "here")
