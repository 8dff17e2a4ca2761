import math

import pytest
import torch

from overheard.questions.membership.estimators.sides import (
    BOUND,
    FLOOR,
    bounded,
    log_normal,
    side_of,
)


def test_means_are_of_each_record_and_the_deviation_of_all() -> None:
    shadows = torch.tensor([[0.0, 5.0, 1.0], [2.0, 9.0, 1.0], [9.0, 9.0, 7.0]]).double()
    inside = torch.tensor([[1, 1, 1], [1, 0, 1], [0, 0, 0]]).bool()
    told = side_of(shadows, inside)
    assert told.count.tolist() == [2, 1, 2]
    assert told.mean.tolist() == [1.0, 5.0, 1.0]
    # Squares about the means are 1 + 1 and 0 + 0, with one degree of freedom each; the second
    # record has one model and none.
    assert float(told.deviation) == pytest.approx(1.0)


def test_a_side_without_models_has_no_mean_and_hardly_a_deviation() -> None:
    told = side_of(torch.ones(3, 2).double(), torch.zeros(3, 2).bool())
    assert told.mean.tolist() == [0.0, 0.0]
    assert float(told.deviation) == FLOOR


def test_the_density_is_that_of_a_normal() -> None:
    told = log_normal(torch.tensor([3.0]), torch.tensor([1.0]), torch.tensor(2.0))
    expected = math.exp(-0.5) / (2 * math.sqrt(2 * math.pi))
    assert float(told.exp()) == pytest.approx(expected, rel=1e-6)


def test_a_model_that_nearly_ran_away_counts_as_one_that_is_sure() -> None:
    told = bounded(torch.tensor([-1e7, -3.0, 0.0, 29.0, 1e30]))
    assert told.tolist() == [-BOUND, -3.0, 0.0, 29.0, BOUND]
