"""Examples that are held out."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.holdout import (
    hold_out_fifth,
    hold_out_latest,
    hold_out_of_users,
    hold_out_stratified,
)

PATH = Path("x.npz")


def test_examples_are_held_out_in_proportion_from_each_stratum() -> None:
    # 20 of 60 + 30 + 10 are held out: 12 + 6 + 2.
    strata = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)
    held_out = hold_out_stratified(strata, 20, Seed(0))
    assert strata[held_out].bincount().tolist() == [12, 6, 2]


def test_the_latest_fifth_of_each_user_is_held_out() -> None:
    # User 0 has times 9..0 (latest two: rows 0 and 1), user 1 times 0..4 (latest: row 14).
    users = torch.tensor([0] * 10 + [1] * 5)
    time = torch.tensor([*range(9, -1, -1), *range(5)])
    assert hold_out_latest(users, time).nonzero().flatten().tolist() == [0, 1, 14]


@given(
    sizes=st.lists(st.sampled_from([3, 7, 60]), min_size=2, max_size=20),
    seed=st.integers(0, 99),
)
def test_users_with_equally_many_examples_keep_equally_many(
    sizes: list[int], seed: int
) -> None:
    users = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    users = users[torch.randperm(len(users), generator=Seed(seed).generator())]
    labels = torch.arange(len(users)) % 3
    for held_out in (
        hold_out_fifth(labels, users, Seed(seed), PATH),
        hold_out_of_users(users, Seed(seed)),
    ):
        # A fifth of 3, 7 and 60, rounded.
        expected = [{3: 1, 7: 1, 60: 12}[size] for size in sizes]
        assert users[held_out].bincount().tolist() == expected


def test_of_users_labels_are_held_out_about_in_proportion() -> None:
    # Each user's fifth would miss 900, 90 and 10 examples by 12, 8 and 3 or so.
    labels = torch.tensor([0] * 4500 + [1] * 450 + [2] * 50)
    users = torch.arange(5000) % 250
    held = [hold_out_fifth(labels, users, Seed(seed), PATH) for seed in range(20)]
    counts = torch.stack([labels[one].bincount(minlength=3) for one in held]).double()
    assert torch.allclose(counts.mean(0), torch.tensor([900.0, 90.0, 10.0]).double(), rtol=0.1)
    assert bool((counts[:, 2] > 0).all())


@pytest.mark.parametrize("seed", range(20))
def test_of_users_a_label_with_two_examples_keeps_one(seed: int) -> None:
    # Users' fifths alone hold out both examples of a label with the seeds 6 and 11.
    users = torch.arange(600) % 30
    labels = torch.cat((torch.zeros(580), torch.arange(1, 11).repeat(2))).long()
    labels = labels[torch.randperm(600, generator=Seed(seed).generator())]
    held_out = hold_out_fifth(labels, users, Seed(seed), PATH)
    assert labels[~held_out].bincount(minlength=11).min() >= 1
    assert users[held_out].bincount().tolist() == [4] * 30


def test_users_with_one_or_two_examples_are_held_out_by_label() -> None:
    users, labels = torch.arange(100) // 2, torch.arange(100) % 2
    held_out = hold_out_fifth(labels, users, Seed(0), PATH)
    assert held_out.equal(hold_out_fifth(labels, None, Seed(0), PATH))
    assert labels[held_out].bincount().tolist() == [10, 10]


def test_refuses_to_hold_out_of_two_examples() -> None:
    with pytest.raises(DataError, match=r"x.npz has 2 examples"):
        hold_out_fifth(torch.tensor([0, 1]), None, Seed(0), PATH)
