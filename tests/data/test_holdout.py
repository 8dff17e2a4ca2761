"""Examples that are held out."""

from pathlib import Path

import pytest
import torch

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.holdout import hold_out_fifth, hold_out_latest, hold_out_stratified


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


def test_refuses_to_hold_out_of_two_examples() -> None:
    with pytest.raises(DataError, match=r"x.npz has 2 examples"):
        hold_out_fifth(torch.tensor([0, 1]), Seed(0), Path("x.npz"))
