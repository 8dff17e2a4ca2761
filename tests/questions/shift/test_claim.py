import pytest
import torch

from overheard.core.claims import Timeline
from overheard.core.errors import ClaimError
from overheard.questions.shift.claim import GaussianEstimate, Shift

NORMAL = 1.6449
"""The 95 % quantile of the normal distribution."""

SHARES = torch.tensor([0.1, 0.2, 0.3, 0.4]).double()


def marks(*labels: int) -> torch.Tensor:
    return torch.isin(torch.arange(4), torch.tensor(labels))


def test_intervals_are_widened_by_the_factor_of_as_many_labels_or_of_those_left() -> None:
    estimate = GaussianEstimate(SHARES, torch.eye(4).double() / 100, (2.0, 3.0))
    total, low, high = estimate.sum_over(marks(0, 3))
    assert total == pytest.approx(0.5)
    assert high - low == pytest.approx(2 * 3 * NORMAL * 0.1 * 2**0.5, rel=1e-4)
    for labels in (marks(1), ~marks(1)):
        _, low, high = estimate.sum_over(labels)
        deviation = 0.1 * int(labels.sum()) ** 0.5
        assert high - low == pytest.approx(2 * 2 * NORMAL * deviation, rel=1e-4)
    interval = estimate.interval()
    assert interval.high[2] == pytest.approx(0.3 + 2 * NORMAL * 0.1, rel=1e-4)


def test_without_factors_intervals_are_normal() -> None:
    _, low, high = GaussianEstimate(SHARES, torch.eye(4).double() / 100).sum_over(marks(0))
    assert high - low == pytest.approx(2 * NORMAL * 0.1, rel=1e-4)


@pytest.mark.parametrize("widening", [(1.0,), (1.0, 1.0, 1.0), (1.0, -1.0), (1.0, torch.inf)])
def test_refuses_factors_that_are_not_one_for_each_number_of_labels(widening) -> None:
    with pytest.raises(ClaimError, match="`widening` must have"):
        GaussianEstimate(SHARES, torch.eye(4).double(), widening)


def test_a_claim_says_why_it_doubts_its_intervals() -> None:
    assert Shift(Timeline()).doubt() is None
    assert Shift(Timeline(), reason_for_doubt="few examples").doubt() == "few examples"
