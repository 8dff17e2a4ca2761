"""Files with tensors."""

import io
import os
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.torch import load_file, save

from overheard.archive import npz, tensor_files
from overheard.archive.npz import (
    MAX_HEADER_BYTES,
    ArrayHeader,
    open_arrays,
    read_content,
    read_header,
)
from overheard.archive.tensor_files import (
    find_flaw,
    read_tensor_blocks,
    read_tensors,
    to_safetensors,
)
from overheard.archive.tensor_records import group_by_record, shares_records
from overheard.archive.weights import StoredWeights, tensor_shapes
from overheard.core.errors import TranscriptError
from overheard.disk.digests import TRUST_VARIABLE

# In an order that is neither alphabetical nor by size.
WEIGHTS = {"b": torch.tensor([1.0, 2.0]), "c": torch.tensor(3.0), "a": torch.ones(2, 3)}


def write_weights(path: Path, content: bytes) -> StoredWeights:
    path.write_bytes(content)
    return StoredWeights(path, tensor_shapes(WEIGHTS))


@pytest.fixture
def weights(tmp_path: Path) -> StoredWeights:
    return write_weights(tmp_path / "x.safetensors", to_safetensors(WEIGHTS))


def test_tensors_are_read_in_the_models_order(weights: StoredWeights) -> None:
    assert list(weights) == ["b", "c", "a"]
    assert len(weights) == 3
    assert all(torch.equal(weights[name], WEIGHTS[name]) for name in WEIGHTS)
    assert tensor_shapes(weights) == tensor_shapes(WEIGHTS)


def test_checking_for_a_name_reads_nothing(weights: StoredWeights) -> None:
    weights.path.unlink()
    assert "a" in weights
    assert "z" not in weights
    with pytest.raises(KeyError):
        weights["z"]


def test_changing_a_tensor_does_not_change_the_file(weights: StoredWeights) -> None:
    weights["b"][0] = 7.0
    assert torch.equal(weights["b"], WEIGHTS["b"])


def test_a_file_that_changed_is_read_anew(weights: StoredWeights) -> None:
    make_old(weights)
    assert weights["c"] == 3.0
    weights.path.write_bytes(to_safetensors(WEIGHTS | {"c": torch.tensor(4.0)}))
    assert weights["c"] == 4.0


def test_a_file_that_was_read_without_a_comparison_is_compared_later(
    weights: StoredWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(weights)
    stated = replace(weights, sha256="0" * 64)
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    assert stated["c"] == 3.0
    monkeypatch.delenv(TRUST_VARIABLE)
    with pytest.raises(TranscriptError, match="was altered"):
        stated["c"]


def make_old(weights: StoredWeights) -> None:
    os.utime(weights.path, (1e9, 1e9))


def test_a_small_file_is_opened_once(
    weights: StoredWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(weights)
    assert torch.equal(weights["b"], WEIGHTS["b"])
    monkeypatch.setattr("overheard.archive.tensor_files.safe_open", None)
    assert torch.equal(weights["a"], WEIGHTS["a"])


@pytest.mark.parametrize("change", ["cut short", "longer"])
def test_a_file_of_another_length_is_damaged(weights: StoredWeights, change: str) -> None:
    content = weights.path.read_bytes()
    weights.path.write_bytes(content[:-4] if change == "cut short" else content + bytes(4))
    make_old(weights)
    with pytest.raises(TranscriptError, match="is damaged or cut short"):
        weights["a"]


def test_a_file_written_just_now_is_not_kept(
    weights: StoredWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its next version might have the same time, where a file system counts in ticks.
    now = weights.path.stat().st_mtime
    monkeypatch.setattr("overheard.archive.tensor_files.time", lambda: now + 0.05)
    assert torch.equal(weights["b"], WEIGHTS["b"])
    monkeypatch.setattr("overheard.archive.tensor_files.safe_open", None)
    with pytest.raises(TypeError):
        weights["b"]


def test_a_tensor_can_be_read_beside_a_damaged_one(tmp_path: Path) -> None:
    damaged = WEIGHTS | {"a": torch.full((2, 3), torch.nan)}
    weights = write_weights(tmp_path / "x.safetensors", save(damaged))
    assert torch.equal(weights["b"], WEIGHTS["b"])
    with pytest.raises(TranscriptError, match="'a' holds NaN or infinity"):
        weights["a"]


def test_a_tensor_remains_after_its_file_is_deleted(weights: StoredWeights) -> None:
    tensor = weights["b"]
    weights.path.unlink()
    assert torch.equal(tensor, WEIGHTS["b"])


@given(st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]))
def test_every_float_type_is_stored_and_read_as_float32(
    tmp_path_factory: pytest.TempPathFactory, dtype: torch.dtype
) -> None:
    path = tmp_path_factory.mktemp("w") / "x.safetensors"
    weights = write_weights(
        path, to_safetensors({name: tensor.to(dtype) for name, tensor in WEIGHTS.items()})
    )
    assert load_file(path)["b"].dtype == dtype
    assert torch.equal(weights["b"], torch.tensor([1.0, 2.0]))


def test_unsupported_float_types_are_refused(tmp_path: Path) -> None:
    small = {name: tensor.to(torch.float8_e4m3fn) for name, tensor in WEIGHTS.items()}
    weights = write_weights(tmp_path / "x.safetensors", save(small))
    with pytest.raises(
        TranscriptError, match=r"x\.safetensors: 'b' holds torch\.float8_e4m3fn"
    ):
        weights["b"]
    assert find_flaw(torch.tensor([1e300], dtype=torch.float64)) is not None


def test_shared_and_transposed_tensors_are_written_separately(tmp_path: Path) -> None:
    base = torch.arange(6.0).reshape(3, 2)
    path = tmp_path / "x.safetensors"
    path.write_bytes(
        to_safetensors({"one": base, "same": base, "across": base.T, "row": base[1]})
    )
    read = read_tensors(path, ("one", "same", "across", "row"))
    assert torch.equal(read["same"], base)
    assert torch.equal(read["across"], base.T)
    assert torch.equal(read["row"], base[1])


def test_the_same_tensors_give_the_same_bytes() -> None:
    assert to_safetensors(WEIGHTS) == to_safetensors(dict(reversed(WEIGHTS.items())))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_neither_written_nor_read(
    tmp_path: Path, bad: float
) -> None:
    invalid = WEIGHTS | {"b": torch.tensor([1.0, bad])}
    with pytest.raises(ValueError, match="'b' holds NaN or infinity"):
        to_safetensors(invalid)
    weights = write_weights(tmp_path / "x.safetensors", save(invalid))
    with pytest.raises(
        TranscriptError, match=r"x\.safetensors: 'b' holds NaN or infinity.*record it again"
    ):
        weights["b"]
    assert torch.equal(weights["a"], WEIGHTS["a"])


def test_integers_are_refused(tmp_path: Path) -> None:
    invalid = WEIGHTS | {"b": torch.tensor([1, 2])}
    assert find_flaw(invalid["b"]) == "holds torch.int64, no floating-point numbers"
    with pytest.raises(ValueError, match=r"torch\.int64"):
        to_safetensors(invalid)
    weights = write_weights(tmp_path / "x.safetensors", save(invalid))
    with pytest.raises(TranscriptError, match=r"'b' holds torch\.int64"):
        weights["b"]


def test_another_shape_than_the_broadcasts_is_refused(tmp_path: Path) -> None:
    weights = write_weights(
        tmp_path / "x.safetensors", to_safetensors(WEIGHTS | {"b": torch.ones(3)})
    )
    with pytest.raises(TranscriptError, match=r"'b' has shape \(3,\), the broadcast has"):
        weights["b"]


def test_other_names_than_the_broadcasts_are_refused(tmp_path: Path) -> None:
    renamed = {"b": torch.ones(2), "c": torch.tensor(1.0), "z": torch.ones(2, 3)}
    weights = write_weights(tmp_path / "x.safetensors", to_safetensors(renamed))
    with pytest.raises(TranscriptError, match=r"missing \['a'\], extra \['z'\]"):
        weights["b"]


@given(st.integers(0, 200))
def test_a_truncated_file_is_refused(
    tmp_path_factory: pytest.TempPathFactory, length: int
) -> None:
    content = to_safetensors(WEIGHTS)
    assert len(content) > 200
    weights = write_weights(tmp_path_factory.mktemp("w") / "x.safetensors", content[:length])
    with pytest.raises(TranscriptError, match="damaged or cut short"):
        weights["b"]


def test_a_deleted_file_is_reported(weights: StoredWeights) -> None:
    weights.path.unlink()
    with pytest.raises(TranscriptError, match="damaged or cut short"):
        weights["b"]


def test_a_long_list_of_tensors_is_refused_before_it_is_read(
    weights: StoredWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensor_files, "MAX_LIST_BYTES", 100)
    with pytest.raises(TranscriptError, match=r"its list of tensors has \d+ bytes"):
        read_tensors(weights.path, ("a",))


def test_a_pickle_is_refused(tmp_path: Path) -> None:
    torch.save(WEIGHTS, tmp_path / "x.safetensors")
    with pytest.raises(TranscriptError, match="damaged or cut short"):
        StoredWeights(tmp_path / "x.safetensors", tensor_shapes(WEIGHTS))["b"]


def test_parts_of_tensors_are_read_in_the_precision_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.float16)}
    path.write_bytes(to_safetensors(tensors))
    read = read_tensor_blocks(
        path, tensor_shapes(tensors), {"a": [(0, 2), (4, 6)], "b": [(1, 2)]}
    )
    assert read["a"].tolist() == [0.0, 1.0, 4.0, 5.0]
    assert read["b"].dtype == torch.float16
    assert read["b"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("content", "shapes", "words"),
    [
        (to_safetensors({"a": torch.ones(3)}), {"a": (4,)}, "has shape"),
        (to_safetensors({"a": torch.ones(3)}), {"b": (3,)}, "other tensors"),
        (save({"a": torch.full((3,), torch.nan)}), {"a": (3,)}, "NaN"),
        (save({"a": torch.ones(3, dtype=torch.int64)}), {"a": (3,)}, "no floating-point"),
        (to_safetensors({"a": torch.ones(3)})[:-1], {"a": (3,)}, "cut short"),
    ],
)
def test_parts_are_checked_as_whole_tensors_are(
    content: bytes, shapes: dict[str, tuple[int, ...]], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(TranscriptError, match=words):
        read_tensor_blocks(path, shapes, {name: [(0, 2)] for name in shapes})


def test_tensors_are_grouped_by_the_record_in_their_name() -> None:
    found = group_by_record(["arrays/w", "arrays/b", "c/w", "free"])
    assert found == {"arrays": {"w", "b"}, "c": {"w"}, "": {"free"}}


def test_records_may_be_missing_or_added_but_not_changed() -> None:
    broadcast = ["arrays/w", "arrays/b", "c/w"]
    assert shares_records(["arrays/w", "arrays/b"], broadcast)
    assert shares_records(["arrays/w", "arrays/b", "d/w"], broadcast)
    assert not shares_records(["arrays/w", "c/w"], broadcast)
    assert not shares_records(["d/w"], broadcast)
    assert not shares_records(["w"], broadcast)


def test_tensors_without_a_record_are_one_record() -> None:
    assert shares_records(["w", "b", "c/w"], ["w", "b"])
    assert not shares_records(["w"], ["w", "b"])


KINDS = st.sampled_from(["|u1", "<i8", ">f4", "<f8", "<U3", ">U2", "|b1", "<M8[ns]"])


def stream_of(head: bytes, numbers: bytes = b"") -> io.BytesIO:
    return io.BytesIO(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + numbers)


def header_text(shape: str) -> bytes:
    return f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n".encode()


@given(
    KINDS.flatmap(
        lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0))
    ),
    st.booleans(),
    st.sampled_from([(1, 0), (2, 0)]),
)
def test_arrays_written_by_numpy_are_read_as_numpy_reads_them(
    array: np.ndarray, is_fortran: bool, version: tuple[int, int]
) -> None:
    stream = io.BytesIO()
    ordered = np.asfortranarray(array) if is_fortran else array
    np.lib.format.write_array(stream, ordered, version)
    stream.seek(0)
    header = read_header(stream.read)
    assert header.start == stream.tell()
    assert (header.shape, header.count) == (ordered.shape, ordered.size)
    read = read_content(stream.read, header, np.dtype(header.dtype))
    assert (read.dtype, read.shape) == (array.dtype, ordered.shape)
    assert read.tobytes() == ordered.tobytes()


def test_shapes_written_by_python_2_are_read() -> None:
    assert read_header(stream_of(header_text("(3L, 2L)")).read).shape == (3, 2)


@pytest.mark.parametrize("numbers", [b"12345", b"1234567"])
def test_content_longer_or_shorter_than_its_header_is_refused(numbers: bytes) -> None:
    stream = stream_of(header_text("(2, 3)"), numbers)
    header = read_header(stream.read)
    assert header == ArrayHeader("|u1", False, (2, 3), 10 + len(header_text("(2, 3)")))
    with pytest.raises(ValueError, match=r"longer than its header|cut short"):
        read_content(stream.read, header, np.dtype("u1"))


def test_headers_up_to_the_limit_are_read() -> None:
    padded = header_text("(1,)")[:-1].ljust(MAX_HEADER_BYTES - 1) + b"\n"
    assert read_header(stream_of(padded).read).shape == (1,)
    with pytest.raises(ValueError, match="16385 bytes, at most 16384"):
        read_header(stream_of(b" " + padded).read)


@given(st.binary(max_size=40), st.integers(0, 120))
def test_damaged_headers_raise_a_value_error_or_are_valid(junk: bytes, place: int) -> None:
    whole = stream_of(header_text("(12, 3)")).getvalue()
    damaged = whole[:place] + junk + whole[place + len(junk) :]
    try:
        header = read_header(io.BytesIO(damaged).read)
    except ValueError:
        return
    assert all(length >= 0 for length in header.shape)


def test_a_long_list_of_arrays_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, **{f"array{number}": np.zeros(1) for number in range(9)})
    with open_arrays(path) as archive:
        assert len(archive.namelist()) == 9
    # Each entry has 46 bytes and its name.
    monkeypatch.setattr(npz, "MAX_LIST_BYTES", 9 * (46 + len("array0.npy")) - 1)
    with pytest.raises(ValueError, match="its list of arrays has 504 bytes"), open_arrays(path):
        pass
