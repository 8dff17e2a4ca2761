"""Parameters in MessagePack are read as they are, and hostile files are refused."""

import random
import tracemalloc
from contextlib import suppress
from pathlib import Path

import msgpack
import numpy as np
import pytest
import torch

from overheard.core.errors import TranscriptError
from overheard.disk.limits import VARIABLE
from overheard.recorders.exported_weights import ExportedWeights
from overheard.recorders.formats._messagepack import read_messagepack_weights


def encode(array: np.ndarray, kind: str = "torch.Tensor") -> dict[str, object]:
    """Encode an array as Fed-BioMed's Serializer does."""
    return {"__type__": kind, "value": [array.tobytes(), array.dtype.name, list(array.shape)]}


def read(folder: Path, content: object) -> ExportedWeights:
    path = folder / "params.mpk"
    path.write_bytes(content if isinstance(content, bytes) else msgpack.packb(content))
    return read_messagepack_weights(path, folder)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 3), (6,), (1, 2, 3), ()])
@pytest.mark.parametrize("kind", ["torch.Tensor", "np.ndarray"])
def test_reads_the_numbers_that_were_written(
    tmp_path: Path, dtype: str, shape: tuple[int, ...], kind: str
) -> None:
    numbers = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape) / 4
    found = read(tmp_path, {"w": encode(numbers.astype(dtype), kind)}).weights["w"]
    assert found.dtype == getattr(torch, dtype)
    np.testing.assert_array_equal(found.numpy(), numbers)


def test_whole_numbers_are_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, {"w": encode(np.ones(2, "float32")), "steps": encode(np.array(3))})
    assert (list(found.weights), found.left_out) == (["w"], ("steps",))


def test_numbers_are_counted_with_32_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {"w": encode(np.ones(1000, "float16"))}
    monkeypatch.setenv(VARIABLE, "4000")
    assert read(tmp_path, content).weights["w"].numel() == 1000
    monkeypatch.setenv(VARIABLE, "3999")
    with pytest.raises(TranscriptError, match="takes 4000 bytes"):
        read(tmp_path, content)


GOOD = encode(np.ones(2, "float32"))
BYTES = b"\0" * 8
START = b"\x81\xa1w\x82\xa8__type__\xactorch.Tensor\xa5value"


def tensor(*value: object) -> dict[str, object]:
    return {"w": {"__type__": "torch.Tensor", "value": list(value)}}


HOSTILE = {
    "empty": b"",
    "no map": [1, 2],
    "no tensors": {},
    "nested": {"w": {"w": GOOD}},
    "a number": {"w": 1.5},
    "a list": {"w": [GOOD]},
    "other type": {"w": {"__type__": "Vector", "value": {"w": GOOD}}},
    "type is a number": {"w": {"__type__": 3, "value": []}},
    "keys in another order": {"w": {"value": GOOD["value"], "__type__": "torch.Tensor"}},
    "a third key": {"w": GOOD | {"more": 1}},
    "object dtype": {"w": {"__type__": "np.ndarray", "value": [BYTES, "object", [1]]}},
    "unknown dtype": tensor(BYTES, "float31", [2]),
    "dtype with commas": tensor(BYTES, "float32,float32", [1]),
    "whole numbers": tensor(BYTES, "int32", [2]),
    "complex numbers": tensor(BYTES, "complex64", [1]),
    "text for bytes": tensor("\0" * 8, "float32", [2]),
    "too short": tensor(BYTES, "float32", [3]),
    "too long": tensor(BYTES, "float32", [1]),
    "negative": tensor(BYTES, "float32", [-2]),
    "negative twice": tensor(BYTES, "float32", [-1, -2]),
    "huge": tensor(BYTES, "float32", [2**40, 2**40]),
    "length is a bool": tensor(BYTES, "float64", [True]),
    "length is a float": tensor(BYTES, "float64", [1.0]),
    "many axes": tensor(BYTES, "float64", [1] * 17),
    "four parts": tensor(BYTES, "float64", [1], 4),
    "nan": {"w": encode(np.array([np.nan], "float32"))},
    "infinite": {"w": encode(np.array([np.inf], "float64"))},
    "extension": {"w": msgpack.ExtType(5, b"cos\nsystem\n(S'id'\ntR.")},
    "time": msgpack.packb({"w": msgpack.Timestamp(1, 2)}),
    "extension as content": tensor(msgpack.ExtType(5, BYTES), "float64", [1]),
    "control characters": {"\x1b[31m": GOOD},
    "long name": {"w" * 201: GOOD},
    "number as name": msgpack.packb({3: GOOD}),
    "same name twice": b"\x82" + 2 * msgpack.packb({"w": GOOD})[1:],
    "more behind": msgpack.packb({"w": GOOD}) + b"\x00",
    "no UTF-8": b"\x81\xa1\xff\xc0",
    "reserved byte": b"\xc1",
    "map of 4 billion": b"\xdf\xff\xff\xff\xff",
    "list of 4 billion": START + b"\xdd\xff\xff\xff\xff",
    "bytes of 4 GB": START + b"\x93\xc6\xff\xff\xff\xff",
    "text of 4 GB": b"\x81\xdb\xff\xff\xff\xff",
    "extension of 4 GB": b"\x81\xa1w\xc9\xff\xff\xff\xff\x05",
    "nested lists": b"\x81\xa1w" + b"\x91" * 100_000,
    "nested maps": b"\x81\xa1w" + b"\x81\xa1w" * 100_000,
    "pickle": b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94.",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_in_little_memory(tmp_path: Path, case: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TranscriptError) as refused:
            read(tmp_path, HOSTILE[case])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(refused.value).isprintable()
    assert peak < 2**22


def test_every_truncated_or_changed_file_is_read_or_refused(tmp_path: Path) -> None:
    """Nothing but a TranscriptError comes of any prefix, or of any changed byte."""
    weights = {"weight": encode(np.ones((2, 3), "float32")), "b": encode(np.ones(2, "float64"))}
    whole, draws = msgpack.packb(weights), random.Random(0)
    assert read(tmp_path, whole).weights.keys() == weights.keys()
    for end in range(len(whole)):
        with pytest.raises(TranscriptError):
            read(tmp_path, whole[:end])
    for _ in range(300):
        changed = bytearray(whole)
        for _ in range(draws.choice((1, 1, 2, 5))):
            changed[draws.randrange(len(whole))] = draws.randrange(256)
        with suppress(TranscriptError):
            read(tmp_path, bytes(changed))
