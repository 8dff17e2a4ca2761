import os
from pathlib import Path

import pytest

from overheard.core.errors import DataError, PlanError
from overheard.disk.limits import (
    ANY_RATIO,
    ARRAY,
    TABLE,
    VARIABLE,
    is_sparse,
    limit_of,
    parse_size,
    refuse_large,
)


@pytest.mark.parametrize("text", ["", "0", "0GB", "-1", "8 G", "1e9", "8GB8", "٨GB"])
def test_refuses_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_size(text)


def test_sizes_have_units() -> None:
    assert [parse_size(one) for one in ("7", "2 kb", "3GB")] == [7, 2048, 3 * 2**30]


def test_the_variable_raises_all_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limit_of(ARRAY) == 2**32
    monkeypatch.setenv(VARIABLE, "8GB")
    assert limit_of(TABLE) == 2**31
    monkeypatch.setenv(VARIABLE, "much")
    with pytest.raises(PlanError, match=f"{VARIABLE}: 'much' is no size"):
        limit_of(TABLE)


def test_the_message_names_the_size_that_the_option_needs() -> None:
    refuse_large("t", 2**30, DataError, part=TABLE)
    # 1 GiB and a byte are a quarter of 4 GiB and 4 bytes.
    with pytest.raises(DataError, match="--max-unpacked 5GB"):
        refuse_large("t", 2**30 + 1, DataError, part=TABLE)


def test_small_files_may_not_unpack_to_much() -> None:
    most = limit_of(ANY_RATIO)
    refuse_large("t", most, DataError, part=ARRAY, packed=1)
    refuse_large("t", 2 * most, DataError, part=ARRAY, packed=most // 40)
    with pytest.raises(DataError, match="has 1 bytes on the disk and unpacks to"):
        refuse_large("t", most + 1, DataError, part=ARRAY, packed=1)


def test_files_of_holes_are_sparse_and_written_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(64 * 1000))
    path = tmp_path / "file"
    path.write_bytes(b"1" * 10_000)
    os.truncate(path, 10**6)
    # A block of 4 KiB may be stored where fewer bytes were written.
    assert not is_sparse(path, path.stat())
    os.truncate(path, 10**8)
    assert is_sparse(path, path.stat())
