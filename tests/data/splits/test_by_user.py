import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.splits.by_user import ByUser

LABELS = torch.zeros(10, dtype=torch.long)
# User 0 has 2 examples, user 2 has 3, user 7 has 5.
USERS = torch.tensor([0, 0, 2, 2, 2, 7, 7, 7, 7, 7])


def test_clients_are_in_the_order_of_their_users() -> None:
    rows = ByUser().assign(LABELS, USERS, torch.tensor([9, 9, 9]), 2, Seed(0))
    assert [sorted(client_rows.tolist()) for client_rows in rows] == [
        [0, 1],
        [2, 3, 4],
        [5, 6, 7, 8, 9],
    ]


def test_a_size_is_an_upper_bound() -> None:
    rows = ByUser().assign(LABELS, USERS, torch.tensor([4, 2, 4]), 2, Seed(0))
    assert [len(client_rows) for client_rows in rows] == [2, 2, 4]


def test_the_seed_chooses_users_if_there_are_more_than_clients() -> None:
    chosen = set()
    for value in range(20):
        (rows,) = ByUser().assign(LABELS, USERS, torch.tensor([1]), 2, Seed(value))
        chosen.add(int(USERS[rows]))
    assert chosen == {0, 2, 7}


def test_refuses_more_clients_than_users() -> None:
    with pytest.raises(PlanError, match="4 clients but 3 users"):
        ByUser().assign(LABELS, USERS, torch.tensor([1] * 4), 2, Seed(0))


def test_refuses_data_without_users() -> None:
    with pytest.raises(PlanError, match="names no users"):
        ByUser().assign(LABELS, None, torch.tensor([1]), 2, Seed(0))
