import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.splits.shares import Shares

LABELS = torch.arange(300) % 3


def counts(compositions: tuple[tuple[float, ...], ...], sizes: list[int]) -> list[list[int]]:
    rows = Shares(compositions).assign(LABELS, None, torch.tensor(sizes), 3, Seed(0))
    return [LABELS[client_rows].bincount(minlength=3).tolist() for client_rows in rows]


def test_shares_become_exactly_these_counts() -> None:
    # 10 * (.5, .3, .2); 7 * (.5, .3, .2) = (3.5, 2.1, 1.4): 3, 2, 1 and one more for .5.
    assert counts(((0.5, 0.3, 0.2), (0.5, 0.3, 0.2)), [10, 7]) == [[5, 3, 2], [4, 2, 1]]


@pytest.mark.parametrize("row", [(0.5, 0.3, 0.1), (50.0, 30.0, 10.0), (1.2, -0.2, 0.0)])
def test_refuses_rows_that_are_not_shares(row: tuple[float, ...]) -> None:
    with pytest.raises(PlanError, match="composition of client 0"):
        Shares((row,))


def test_refuses_too_few_rows() -> None:
    with pytest.raises(PlanError, match="1 compositions for 2 clients"):
        counts(((0.5, 0.3, 0.2),), [10, 10])


def test_refuses_a_row_for_another_number_of_labels() -> None:
    with pytest.raises(PlanError, match="has 2 shares, the task has 3 labels"):
        counts(((0.5, 0.5),), [10])


def test_refuses_no_rows() -> None:
    with pytest.raises(PlanError, match="give one row per client"):
        Shares(())
