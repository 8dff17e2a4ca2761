"""Auxiliary examples from elsewhere: of the same form, and nobody's."""

from dataclasses import replace

import pytest
import torch

from overheard.auditing.auxiliary import drawn_from
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.deal import Auxiliary

TASK = Task((2,), ("cat", "dog"))


def numbered(numbers: list[int]) -> Examples:
    """Each input is its number twice; its label says whether the number is odd."""
    column = torch.tensor(numbers)
    return Examples(column[:, None].repeat(1, 2).float(), column % 2)


AUDITED = Dataset(numbered([0, 1, 2, 3]), numbered([4, 5]), TASK)
ELSEWHERE = Dataset(numbered([0, 1, 4, 5, 10, 11, 12, 13, 15]), numbered([20]), TASK)
"""Four of its examples are the audited ones; it has 10 and 12 besides, and 11, 13, 15."""


def drawn(wanted: Auxiliary, seed: int = 0) -> Examples:
    return drawn_from(ELSEWHERE, AUDITED, wanted, Seed(seed), "auxiliary_from here")


def numbers(examples: Examples) -> list[int]:
    return sorted(examples.inputs[:, 0].int().tolist())


def test_as_many_of_each_class_as_wanted_and_none_that_the_audited_data_hold():
    got = drawn(Auxiliary(per_class=2))
    assert got.counts(2).tolist() == [2, 2]
    assert {10, 12} < set(numbers(got)) < {10, 11, 12, 13, 15}


def test_in_all_as_the_other_population_has_them():
    # 4 even and 5 odd among its 9; of 2, one each
    assert drawn(Auxiliary(total=2)).counts(2).tolist() == [1, 1]


def test_another_seed_draws_others():
    assert {tuple(numbers(drawn(Auxiliary(per_class=1), n))) for n in range(20)} == {
        (even, odd) if even < odd else (odd, even) for even in (10, 12) for odd in (11, 13, 15)
    }


def test_too_few_are_told_with_the_label_and_the_mend():
    with pytest.raises(
        PlanError,
        match="auxiliary_from here: 3 examples with label 0 are needed, and 2 are there that "
        "the audited data do not hold: ask for fewer",
    ):
        drawn(Auxiliary(per_class=3))


@pytest.mark.parametrize(
    "task",
    [Task((2,), ("cat", "dog", "cow")), Task((2,), ("cat", "dog"), vocabulary=9)],
    ids=["classes", "vocabulary"],
)
def test_examples_of_another_form_are_refused(task: Task):
    inputs = ELSEWHERE.train.inputs
    part = Examples(inputs if task.vocabulary is None else inputs.long() % 9,
                    ELSEWHERE.train.labels)  # fmt: skip
    other = replace(ELSEWHERE, train=part, test=part, task=task)
    with pytest.raises(
        PlanError, match=r"auxiliary_from here: has .*a data set of the same form"
    ):
        drawn_from(other, AUDITED, Auxiliary(per_class=1), Seed(0), "auxiliary_from here")
