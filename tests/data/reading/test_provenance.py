from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.reading.custom_arrays import Provenance, read_provenance

PATH = Path("a.npz")


def test_users_times_and_records_of_a_file_are_numbered(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        user=np.array([70, 30, 70]),
        times=np.array(["2004-08-02", "2003-01-01", "2004-08-02"], dtype="datetime64[D]"),
        records=np.array([9, 9, 4]),
    )
    names = frozenset({"user", "times", "records"})
    provenance = read_provenance(tmp_path / "a.npz", "", names, 3)
    assert provenance.users is not None
    assert provenance.users.tolist() == [1, 0, 1]
    assert provenance.user_names == ("30", "70")
    assert provenance.times is not None
    assert provenance.times.tolist() == [1, 0, 1]
    assert provenance.records is not None
    assert provenance.records.tolist() == [1, 1, 0]


def test_refuses_a_date_out_of_range(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, times=np.array([2**60, 1], dtype="datetime64[Y]"))
    with pytest.raises(DataError, match="has a date out of range: use numbers"):
        read_provenance(path, "", frozenset({"times"}), 2)


@given(st.lists(st.integers(0, 20), min_size=30, max_size=60), st.integers(0, 5))
def test_records_are_held_out_whole(records: list[int], seed: int) -> None:
    numbers = torch.from_numpy(np.unique(records, return_inverse=True)[1])
    record_count = int(numbers.max()) + 1
    if record_count < 3:
        return
    held_out = Provenance(records=numbers).hold_out_fifth(numbers % 2, Seed(seed), PATH)
    test_records, train_records = (
        set(numbers[held_out].tolist()),
        set(numbers[~held_out].tolist()),
    )
    assert not test_records & train_records
    assert len(test_records) == round(record_count / 5)


def test_refuses_to_hold_out_of_two_records() -> None:
    records = torch.arange(100) % 2
    with pytest.raises(DataError, match="2 examples"):
        Provenance(records=records).hold_out_fifth(records, Seed(0), PATH)
