import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed
from overheard.linkage.training_pairs import draw_embedding_pairs, draw_update_pairs

USERS = torch.tensor([0, 2, 0, 2, 5, 0])
"""User 5 has one update, so it is only in pairs that do not match."""


def test_every_second_pair_is_of_the_same_user() -> None:
    pairs = draw_update_pairs(USERS, 200, Seed(0), "me")
    assert pairs.match.tolist() == [True, False] * 100
    assert (USERS[pairs.left] == USERS[pairs.right]).equal(pairs.match)
    assert bool((pairs.left != pairs.right).all())
    assert set(USERS[pairs.left[~pairs.match]].tolist()) == {0, 2, 5}


@pytest.mark.parametrize("people", [[0, 1, 2], [3, 3]])
def test_needs_two_updates_of_one_user_and_one_of_another(people) -> None:
    with pytest.raises(NeedsError, match="me needs two updates or more"):
        draw_update_pairs(torch.tensor(people), 10, Seed(0), "me")


def test_every_second_embedding_is_that_of_the_updates_user() -> None:
    pairs = draw_embedding_pairs(USERS, 200, Seed(0), "me")
    assert pairs.match.tolist() == [True, False] * 100
    assert (USERS[pairs.left] == pairs.right).equal(pairs.match)
    assert set(pairs.right.tolist()) == {0, 2, 5}


@pytest.mark.parametrize("people", [[], [4, 4]])
def test_embedding_pairs_need_two_users(people) -> None:
    with pytest.raises(NeedsError, match=r"me needs .*holdout"):
        draw_embedding_pairs(torch.tensor(people, dtype=torch.long), 10, Seed(0), "me")
