"""Splits of examples over clients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.faces import Faces
from overheard.data.splits.iid import Iid
from overheard.data.splits.quantity import Quantity
from overheard.data.splits.shares import Shares

SAME_LABEL = torch.zeros(10, dtype=torch.long)


# User 0 has 2 examples, user 2 has 3, user 7 has 5.
USERS = torch.tensor([0, 0, 2, 2, 2, 7, 7, 7, 7, 7])


def test_the_number_of_a_client_does_not_tell_its_user() -> None:
    orders = set()
    for value in range(40):
        rows = ByUser().assign(SAME_LABEL, USERS, torch.tensor([9, 9, 9]), 2, Seed(value))
        held = [sorted(client_rows.tolist()) for client_rows in rows]
        assert sorted(held) == [[0, 1], [2, 3, 4], [5, 6, 7, 8, 9]]
        orders.add(tuple(map(len, held)))
    assert len(orders) == 6


def test_a_size_is_an_upper_bound() -> None:
    rows = ByUser().assign(SAME_LABEL, USERS, torch.tensor([4, 4, 4]), 2, Seed(0))
    assert sorted(len(client_rows) for client_rows in rows) == [2, 3, 4]


def test_the_seed_chooses_users_if_there_are_more_than_clients() -> None:
    chosen = set()
    for value in range(20):
        (rows,) = ByUser().assign(SAME_LABEL, USERS, torch.tensor([1]), 2, Seed(value))
        chosen.add(int(USERS[rows]))
    assert chosen == {0, 2, 7}


def test_refuses_more_clients_than_users() -> None:
    with pytest.raises(PlanError, match="4 clients but 3 users"):
        ByUser().assign(SAME_LABEL, USERS, torch.tensor([1] * 4), 2, Seed(0))


def test_refuses_data_without_users() -> None:
    with pytest.raises(PlanError, match="names no users"):
        ByUser().assign(SAME_LABEL, None, torch.tensor([1]), 2, Seed(0))


FOUR_LABELS = torch.arange(40_000) % 4


def shares(alpha: float, clients: int, size: int) -> torch.Tensor:
    rows = Dirichlet(alpha).assign(
        FOUR_LABELS, None, torch.tensor([size] * clients), 4, Seed(5)
    )
    return torch.stack(
        [FOUR_LABELS[client_rows].bincount(minlength=4) / size for client_rows in rows]
    )


def test_shares_have_the_variance_of_the_distribution() -> None:
    # Var p_c = (1/4)(3/4) / (4 * 0.5 + 1) = 0.0625 for alpha 0.5 and 4 classes.
    variance = shares(0.5, 400, 50).var(dim=0)
    assert torch.allclose(variance, torch.full((4,), 0.0625), atol=0.015)


def test_clients_that_use_up_the_pool_get_their_sizes() -> None:
    labels = torch.arange(100) % 4
    rows = Dirichlet(0.1).assign(labels, None, torch.tensor([20] * 5), 4, Seed(0))
    assert torch.cat(rows).sort().values.equal(torch.arange(100))


def counts(classes: int, sizes: list[int], pool: int, seed: int = 0) -> list[list[int]]:
    labels = torch.arange(pool) % classes
    rows = Faces().assign(labels, None, torch.tensor(sizes), classes, Seed(seed))
    return [labels[client_rows].bincount(minlength=classes).tolist() for client_rows in rows]


def test_each_number_of_labels_is_equally_likely() -> None:
    # 400 clients, four numbers: 100 +- 8.7 each; four deviations are 35.
    label_counts = [
        sum(n > 0 for n in counts_of_client)
        for counts_of_client in counts(4, [20] * 400, 40_000)
    ]
    assert all(abs(label_counts.count(number) - 100) < 35 for number in (1, 2, 3, 4))


def test_shares_of_two_labels_are_uniform() -> None:
    # With both labels, the share of the first is uniform: a quarter are below 0.25.
    both = [
        counts_of_client
        for counts_of_client in counts(2, [100] * 800, 160_000)
        if min(counts_of_client) > 0
    ]
    low = sum(counts_of_client[0] <= 25 for counts_of_client in both) / len(both)
    assert low == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / len(both)) ** 0.5)


def test_refuses_a_pool_with_too_few_examples_per_label() -> None:
    # The pool has two examples of each of 20 labels. A client of 19 needs 10 labels or more and
    # at most two examples of each, and uniform shares are never that even.
    with pytest.raises(
        PlanError, match=r"faces: too few examples are left for client \d of 19"
    ):
        counts(20, [19, 19], 40)


FIVE_LABELS = torch.arange(1000) % 5


@given(size=st.integers(20, 180), seed=st.integers(0, 999))
def test_each_label_count_lies_in_its_range(size: int, seed: int) -> None:
    rows = Iid(0.1).assign(FIVE_LABELS, None, torch.tensor([size] * 5), 5, Seed(seed))
    for client_rows in rows:
        counts = FIVE_LABELS[client_rows].bincount(minlength=5)
        # Whole numbers may leave 0.9 .. 1.1 times size / 5 by less than 1.
        assert float(counts.min()) > 0.9 * size / 5 - 1
        assert float(counts.max()) < 1.1 * size / 5 + 1


def test_a_pool_may_be_used_up_exactly() -> None:
    # 5 clients of 200 take all 1000: the last ones take the remaining examples.
    rows = Iid(0.0).assign(FIVE_LABELS, None, torch.tensor([200] * 5), 5, Seed(0))
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


SIX_LABELS = torch.arange(600) % 6


@given(held=st.integers(1, 6), seed=st.integers(0, 999))
def test_each_client_holds_its_labels_equally_often(held: int, seed: int) -> None:
    for rows in Quantity(held).assign(SIX_LABELS, None, torch.tensor([30, 31]), 6, Seed(seed)):
        counts = SIX_LABELS[rows].bincount(minlength=6)
        assert int((counts > 0).sum()) == held
        present = counts[counts > 0]
        assert int(present.max()) - int(present.min()) <= 1


def test_with_alpha_each_client_holds_its_labels_in_shares_that_vary() -> None:
    split, sizes = Quantity(3, alpha=1.0), torch.tensor([30] * 15)
    counts = split.draw_label_counts(SIX_LABELS, sizes, 6, Seed(0))
    assert counts.sum(1).tolist() == sizes.tolist()
    assert (counts > 0).sum(1).tolist() == [3] * 15
    # The largest of three shares that are uniform on the simplex is 11/18 on average: 18 of 30.
    assert float(counts.max(1).values.double().mean()) == pytest.approx(18.3, abs=3)


def test_labels_are_used_equally_often() -> None:
    # 6 clients of 2 labels x 50 use every label twice: all 600 examples.
    rows = Quantity(2).assign(SIX_LABELS, None, torch.tensor([100] * 6), 6, Seed(2))
    assert torch.cat(rows).sort().values.equal(torch.arange(600))


def test_refuses_more_labels_than_exist() -> None:
    with pytest.raises(PlanError, match="7 classes per client, but there are 6 classes"):
        Quantity(7).assign(SIX_LABELS, None, torch.tensor([30]), 6, Seed(0))


def test_refuses_a_pool_that_runs_out_and_says_what_is_left() -> None:
    # Each label has 100; one client wants 150 of one.
    with pytest.raises(PlanError, match=r"client 0 needs \[150\] examples of 1 labels"):
        Quantity(1).assign(SIX_LABELS, None, torch.tensor([150]), 6, Seed(0))


THREE_LABELS = torch.arange(300) % 3


def counts_of_shares(
    compositions: tuple[tuple[float, ...], ...], sizes: list[int]
) -> list[list[int]]:
    rows = Shares(compositions).assign(THREE_LABELS, None, torch.tensor(sizes), 3, Seed(0))
    return [THREE_LABELS[client_rows].bincount(minlength=3).tolist() for client_rows in rows]


def test_shares_become_exactly_these_counts() -> None:
    # 10 * (.5, .3, .2); 7 * (.5, .3, .2) = (3.5, 2.1, 1.4): 3, 2, 1 and one more for .5.
    assert counts_of_shares(((0.5, 0.3, 0.2), (0.5, 0.3, 0.2)), [10, 7]) == [
        [5, 3, 2],
        [4, 2, 1],
    ]


@pytest.mark.parametrize("row", [(0.5, 0.3, 0.1), (50.0, 30.0, 10.0), (1.2, -0.2, 0.0)])
def test_refuses_rows_that_are_not_shares(row: tuple[float, ...]) -> None:
    with pytest.raises(PlanError, match="composition of client 0"):
        Shares((row,))


def test_refuses_too_few_rows() -> None:
    with pytest.raises(PlanError, match="1 compositions for 2 clients: give one per client"):
        counts_of_shares(((0.5, 0.3, 0.2),), [10, 10])


def test_refuses_a_row_for_another_number_of_labels() -> None:
    with pytest.raises(PlanError, match="the task has 3 labels: give one share per label"):
        counts_of_shares(((0.5, 0.5),), [10])


def test_refuses_no_rows() -> None:
    with pytest.raises(PlanError, match="give one row per client"):
        Shares(())
