import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.splits.iid import Iid

LABELS = torch.arange(1000) % 5


@given(size=st.integers(20, 180), seed=st.integers(0, 999))
def test_each_label_count_lies_in_its_range(size: int, seed: int) -> None:
    rows = Iid(0.1).assign(LABELS, None, torch.tensor([size] * 5), 5, Seed(seed))
    for client_rows in rows:
        counts = LABELS[client_rows].bincount(minlength=5)
        # Whole numbers may leave 0.9 .. 1.1 times size / 5 by less than 1.
        assert float(counts.min()) > 0.9 * size / 5 - 1
        assert float(counts.max()) < 1.1 * size / 5 + 1


def test_a_pool_may_be_used_up_exactly() -> None:
    # 5 clients of 200 take all 1000: the last ones take the remaining examples.
    rows = Iid(0.0).assign(LABELS, None, torch.tensor([200] * 5), 5, Seed(0))
    assert torch.cat(rows).sort().values.equal(torch.arange(1000))


def test_refuses_a_pool_with_too_few_of_a_label_and_names_it() -> None:
    # 90 of label 0, 10 of label 1; even shares of 40 want 20 of each.
    labels = torch.tensor([0] * 90 + [1] * 10)
    with pytest.raises(PlanError, match="20 examples with label 1 are needed, but 10 are left"):
        Iid(0.0).assign(labels, None, torch.tensor([40]), 2, Seed(0))


def test_unbalanced_follows_the_shares_of_the_pool() -> None:
    # 90:10 in the pool, so 36:4 in a client of 40.
    labels = torch.tensor([0] * 90 + [1] * 10)
    (rows,) = Iid(0.0, balanced=False).assign(labels, None, torch.tensor([40]), 2, Seed(0))
    assert labels[rows].bincount().tolist() == [36, 4]


@pytest.mark.parametrize("rare", [3, 30])
def test_unbalanced_takes_every_example_of_a_pool_with_a_rare_label(rare: int) -> None:
    # An even share of 0.12 or 1.2 examples of the rare label for each of 25 clients.
    labels = torch.tensor([0] * (500 - rare) + [1] * rare)
    split = Iid(balanced=False)
    rows = split.assign(labels, None, torch.tensor([20] * 25), 2, Seed(0))
    assert torch.cat(rows).sort().values.equal(torch.arange(500))


def test_a_rare_label_is_as_frequent_in_clients_as_in_the_pool() -> None:
    # 2 % of the pool, so 0.4 examples of a client of 20: not rounded to none.
    labels = torch.tensor([0] * 4900 + [1] * 100)
    rows = Iid(balanced=False).assign(labels, None, torch.tensor([20] * 100), 2, Seed(0))
    assert 20 < int(labels[torch.cat(rows)].sum()) < 60


def test_a_balanced_split_names_the_key_that_follows_the_pool() -> None:
    labels = torch.tensor([0] * 90 + [1] * 10)
    with pytest.raises(PlanError, match="set balanced = false in the split"):
        Iid().assign(labels, None, torch.tensor([40]), 2, Seed(0))
