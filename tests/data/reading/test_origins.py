from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.reading.origins import Origins, read_origins

PATH = Path("a.npz")


def test_what_a_file_tells_is_numbered(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        user=np.array([70, 30, 70]),
        times=np.array(["2004-08-02", "2003-01-01", "2004-08-02"], dtype="datetime64[D]"),
        records=np.array([9, 9, 4]),
    )
    held = frozenset({"user", "times", "records"})
    origins = read_origins(tmp_path / "a.npz", "", held, 3)
    assert origins.users is not None
    assert origins.users.tolist() == [1, 0, 1]
    assert origins.user_names == ("30", "70")
    assert origins.times is not None
    assert origins.times.tolist() == [1, 0, 1]
    assert origins.records is not None
    assert origins.records.tolist() == [1, 1, 0]


def test_a_date_of_no_calendar_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, times=np.array([2**60, 1], dtype="datetime64[Y]"))
    with pytest.raises(DataError, match="holds a date that no calendar has: write numbers"):
        read_origins(path, "", frozenset({"times"}), 2)


def test_a_file_that_tells_nothing_tells_nothing() -> None:
    assert read_origins(PATH, "", frozenset({"x", "y"}), 3) == Origins()
    assert Origins().take(torch.tensor([True, False])) == Origins()


def test_taken_examples_keep_the_numbers_of_their_users_and_records() -> None:
    numbers = torch.tensor([0, 1, 2])
    taken = Origins(numbers, ("a", "b", "c"), numbers, numbers).take(numbers != 1)
    assert taken.users is not None
    assert taken.users.tolist() == [0, 2]
    assert taken.user_names == ("a", "b", "c")


@given(st.lists(st.integers(0, 20), min_size=30, max_size=60), st.integers(0, 5))
def test_no_record_is_held_out_in_part(records: list[int], seed: int) -> None:
    numbers = torch.from_numpy(np.unique(records, return_inverse=True)[1])
    there = int(numbers.max()) + 1
    if there < 3:
        return
    held_out = Origins(records=numbers).held_out_fifth(numbers % 2, Seed(seed), PATH)
    out, kept = set(numbers[held_out].tolist()), set(numbers[~held_out].tolist())
    assert not out & kept
    assert len(out) == round(there / 5)


def test_two_records_are_too_few_to_hold_one_out() -> None:
    records = torch.arange(100) % 2
    with pytest.raises(DataError, match="2 examples"):
        Origins(records=records).held_out_fifth(records, Seed(0), PATH)
