import math

import pytest
import torch

from overheard.questions.membership.estimators.in_out_models import (
    MAX_LOG_ODDS,
    MIN_DEVIATION,
    clamp_log_odds,
    fit_log_odds,
    normal_log_density,
)


def test_each_record_has_its_mean_and_all_share_a_deviation() -> None:
    shadows = torch.tensor([[0.0, 5.0, 1.0], [2.0, 9.0, 1.0], [9.0, 9.0, 7.0]]).double()
    is_member = torch.tensor([[1, 1, 1], [1, 0, 1], [0, 0, 0]]).bool()
    result = fit_log_odds(shadows, is_member)
    assert result.count.tolist() == [2, 1, 2]
    assert result.mean.tolist() == [1.0, 5.0, 1.0]
    # Squares around the means are 1 + 1 and 0 + 0, with one degree of freedom each; the second
    # record has one model and none.
    assert float(result.deviation) == pytest.approx(1.0)


def test_without_models_the_mean_is_0_and_the_deviation_minimal() -> None:
    result = fit_log_odds(torch.ones(3, 2).double(), torch.zeros(3, 2).bool())
    assert result.mean.tolist() == [0.0, 0.0]
    assert float(result.deviation) == MIN_DEVIATION


def test_the_density_is_that_of_a_normal() -> None:
    result = normal_log_density(torch.tensor([3.0]), torch.tensor([1.0]), torch.tensor(2.0))
    expected = math.exp(-0.5) / (2 * math.sqrt(2 * math.pi))
    assert float(result.exp()) == pytest.approx(expected, rel=1e-6)


def test_clamps_the_log_odds_of_nearly_diverging_models() -> None:
    result = clamp_log_odds(torch.tensor([-1e7, -3.0, 0.0, 29.0, 1e30]))
    assert result.tolist() == [-MAX_LOG_ODDS, -3.0, 0.0, 29.0, MAX_LOG_ODDS]
