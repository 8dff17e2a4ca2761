"""Files that were made to crash a reader, or to take its memory or time, are refused."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import h5py
import numpy as np
import pytest

from overheard.core.errors import TranscriptError
from overheard.recorders.exported_weights import read_exported_weights
from overheard.recorders.model_files import onnx_messages


def refusal(path: Path) -> str:
    with pytest.raises(TranscriptError) as refused:
        read_exported_weights(path, path.parent)
    return str(refused.value)


def save_program(path: Path, program: bytes, numbers: bytes = bytes(16)) -> Path:
    """Write a file of PyTorch with this program of the pickle protocol."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", program)
        archive.writestr("a/data/0", numbers)
    return path


def whole(number: int) -> bytes:
    content = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(content)]) + content


def tensor(shape: bytes, steps: bytes, offset: int = 0) -> bytes:
    """Return the instructions for a tensor whose shape and steps are made by these."""
    storage = b"(U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x04tQ"
    arguments = storage + whole(offset) + shape + steps
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + arguments + b"tR"


def tuple_of(numbers: Sequence[int]) -> bytes:
    return b"(" + b"".join(map(whole, numbers)) + b"t"


def state_of(one: bytes) -> bytes:
    return b"\x80\x02}U\x01w" + one + b"s."


@pytest.mark.parametrize(
    ("shape", "steps"), [((1, 2), (2**100, 1)), ((0, 2**100), (1, 1)), ((2, 2), (-1, 1))]
)
def test_lengths_that_no_tensor_has_are_refused(
    tmp_path: Path, shape: Sequence[int], steps: Sequence[int]
) -> None:
    program = state_of(tensor(tuple_of(shape), tuple_of(steps)))
    assert "that no tensor has" in refusal(save_program(tmp_path / "model.pt", program))


def test_a_shape_that_is_endless_as_text_is_not_shown(tmp_path: Path) -> None:
    # Each tuple holds the one before twice: as text, the last takes 2**60 times as much.
    doubled = b"]q\x00" + b"".join(b"h%ch%c\x86q%c" % (n, n, n + 1) for n in range(60))
    program = state_of(tensor(b"(" + doubled + b"t", tuple_of([1])))
    assert "that no tensor has" in refusal(save_program(tmp_path / "model.pt", program))
    named = b"\x80\x02" + doubled + b"U\x01x\x93."
    assert "no dict of tensors" in refusal(save_program(tmp_path / "model.pt", named))


def test_keys_that_have_one_hash_do_not_fill_a_dict(tmp_path: Path) -> None:
    keys = [(2**61 - 1) * number + 7 for number in range(2, 20_000)]
    assert len({hash(one) for one in keys}) == 1
    program = b"\x80\x02}(" + b"".join(whole(one) + b"N" for one in keys) + b"u."
    start = process_time()
    assert "no dict of tensors" in refusal(save_program(tmp_path / "model.pt", program))
    assert process_time() - start < 1  # with them, ten times as long
    places = b"\x80\x02}" + b"".join(b"p%d\n" % one for one in keys) + b"."
    assert "do not fit" in refusal(save_program(tmp_path / "model.pt", places))


def test_views_at_the_end_of_a_storage_are_read_without_its_start(tmp_path: Path) -> None:
    place = 2**22
    numbers = bytes(4 * place) + np.float32(3).tobytes()
    parts = [
        b"U\x04w%03d" % number + tensor(tuple_of([1]), tuple_of([1]), place)
        for number in range(300)
    ]
    program = b"\x80\x02}(" + b"".join(parts) + b"u."
    path = save_program(tmp_path / "model.pt", program, numbers)
    start = process_time()
    found = read_exported_weights(path, tmp_path).weights
    assert len(found) == 300
    assert all(one.item() == 3 for one in found.values())
    assert process_time() - start < 1  # reading 5 GB takes longer


def test_a_part_of_a_keras_file_does_not_unpack_to_more_than_its_shape(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "model.h5", "w") as file:
        held = file.create_dataset("w", (4,), "f4", chunks=(4,), compression="gzip")
        held.id.write_direct_chunk((0,), zlib.compress(bytes(2**24)))
    assert "w is compressed" in refusal(tmp_path / "model.h5")


def test_a_type_that_numpy_does_not_have_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "model.h5", "w") as file:
        space = h5py.h5s.create_simple((3,))
        h5py.h5d.create(file.id, b"w", h5py.h5t.UNIX_D32LE, space)
    assert "not floating-point numbers" in refusal(tmp_path / "model.h5")


def of_length(content: bytes) -> bytes:
    """Return the length of a message, as protocol buffers have it, and the message."""
    parts, length = list[int](), len(content)
    while length > 127:
        parts.append(length & 127 | 128)
        length >>= 7
    return bytes([*parts, length]) + content


@pytest.mark.parametrize("start", [b"", b"\x2a"])
def test_nodes_of_onnx_without_content_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr(onnx_messages, "MOST_FIELDS", 1000)
    # Fields of a graph, or of one of its initializers.
    fields = b"\x6a\x00" * 1001
    graph = start + of_length(fields) if start else fields
    (tmp_path / "model.onnx").write_bytes(b"\x3a" + of_length(graph))
    assert "more than 1000 fields" in refusal(tmp_path / "model.onnx")
