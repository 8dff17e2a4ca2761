import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from overheard.archive.npz import MAX_HEADER_BYTES, ArrayHeader, read_content, read_header

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
