import contextlib
import io
import struct
import tracemalloc
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overheard.core.errors import DataError
from overheard.data.reading.arrays import (
    checked_names,
    read_array,
    read_numbers,
    read_pixels,
)

MIB = 2**20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "set.npz"
    np.savez_compressed(
        file,
        x=np.zeros((3, 4, 4), np.uint8),
        y=np.array([0, 1, 2]),
        real=np.array([0.5, 1.0, 2.0]),
        names=np.array(["a", "b", "c"]),
    )
    return file


def with_header(path: Path, shape: tuple[int, ...], kind: str, content: bytes) -> Path:
    """Write an `.npz` file whose only array, x, has a header of our choice."""
    stream = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", stream.getvalue() + content)
    return path


def test_a_missing_array_is_reported_with_the_existing_ones(path: Path) -> None:
    with pytest.raises(DataError, match="no array 'z', only names, real, x, y"):
        read_array(path, "z")


def test_refuses_images_of_another_shape(path: Path) -> None:
    with pytest.raises(DataError, match=r"set.npz: 'x' must be uint8 of shape"):
        read_pixels(path, "x", (5, 5))


@pytest.mark.parametrize(("name", "below", "count"), [("y", 2, 3), ("y", 3, 2), ("real", 3, 3)])
def test_refuses_numbers_that_are_no_labels(
    path: Path, name: str, below: int, count: int
) -> None:
    with pytest.raises(DataError, match=f"'{name}' must"):
        read_numbers(path, name, below=below, examples=count)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="never unpickled"):
        read_array(tmp_path / "evil.npz", "x")


def test_refuses_an_array_whose_header_claims_too_much(tmp_path: Path) -> None:
    path = with_header(tmp_path / "bomb.npz", (2**29 + 1,), "|u1", b"")
    with pytest.raises(DataError, match="--max-unpacked 5GB"):
        read_array(path, "x")


def test_refuses_an_array_longer_or_shorter_than_its_header(tmp_path: Path) -> None:
    for content in (b"", b"123456"):
        path = with_header(tmp_path / "short.npz", (5,), "|u1", content)
        with pytest.raises(DataError, match="does not have the length in its header"):
            read_array(path, "x")


def test_refuses_a_negative_length(tmp_path: Path) -> None:
    path = with_header(tmp_path / "negative.npz", (-1, -5), "|u1", b"12345")
    with pytest.raises(DataError):
        read_array(path, "x")


def array(head: bytes, numbers: bytes = b"\0" * 8, version: bytes = b"\x01\x00") -> bytes:
    """Return an array as in an `.npz`, with any header."""
    length = struct.pack("<H" if version == b"\x01\x00" else "<I", len(head))
    return b"\x93NUMPY" + version + length + head + numbers


def zipped(entries: Mapping[str, bytes]) -> bytes:
    page = io.BytesIO()
    with zipfile.ZipFile(page, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return page.getvalue()


def lying(content: bytes, claim: int) -> bytes:
    """Return the zip with this claimed unpacked size of every entry."""
    damaged = bytearray(content)
    for mark, place in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = damaged.find(mark)
        while start >= 0:
            damaged[start + place : start + place + 4] = struct.pack("<I", claim)
            start = damaged.find(mark, start + 4)
    return bytes(damaged)


def write_file(tmp_path: Path, content: bytes) -> Path:
    """Write a file with this content."""
    (tmp_path / "own.npz").write_bytes(content)
    return tmp_path / "own.npz"


@contextlib.contextmanager
def in_little_memory() -> Iterator[None]:
    """Assert that no more than 8 MiB are allocated at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_refuses_a_header_of_megabytes_without_reading_it(tmp_path: Path) -> None:
    head = b" " * (32 * MIB)
    path = write_file(tmp_path, zipped({"x.npy": array(head, version=b"\x02\x00")}))
    with in_little_memory(), pytest.raises(DataError, match="its header has 33554432 bytes"):
        read_array(path, "x")


def header_of(kind: str, shape: str) -> bytes:
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()


@pytest.mark.slow
def test_refuses_an_array_that_unpacks_to_far_more_than_its_size(tmp_path: Path) -> None:
    numbers = 64 * MIB + 1
    bomb = array(header_of("|u1", f"({numbers},)"), b"\0" * numbers)
    path = write_file(
        tmp_path, zipped({"x.npy": bomb, "y.npy": array(header_of("<f4", "(2,)"))})
    )
    with in_little_memory(), pytest.raises(DataError, match=r"'x' of shape .*--max-unpacked"):
        read_array(path, "x")
    assert read_array(path, "y").tolist() == [0.0, 0.0]


TWO = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


def zip_of(method: int, head: bytes = TWO) -> bytes:
    """Return a zip of one array, which has two zeros whatever its header says."""
    page = io.BytesIO()
    with zipfile.ZipFile(page, "w", method) as archive:
        archive.writestr("x.npy", array(head))
    return page.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_zip_with_false_sizes_takes_no_memory(tmp_path: Path, method: int) -> None:
    head = header_of("<f4", f"({256 * MIB},)")
    content = bytearray(lying(zip_of(method, head), 10 + len(head) + 1024 * MIB))
    # The packed size that the directory claims.
    struct.pack_into("<I", content, content.find(b"PK\x01\x02") + 20, 1024 * MIB)
    # From 3.11.8 on, Python itself refuses it: entries overlap.
    said = "and unpacks to 1073741|Overlapped entries"
    with in_little_memory(), pytest.raises(DataError, match=said):
        read_array(write_file(tmp_path, bytes(content)), "x")


def test_reads_small_arrays_of_any_order_and_compression(tmp_path: Path) -> None:
    images = np.asfortranarray(np.arange(24, dtype=">i4").reshape(2, 3, 4))
    # Packed a hundred to one, but small.
    many = np.zeros(4 * MIB, np.uint8)
    np.savez_compressed(tmp_path / "own.npz", images=images, many=many, one=np.float64(7))
    read = read_array(tmp_path / "own.npz", "images")
    assert np.array_equal(read, images)
    assert (read.dtype, read_array(tmp_path / "own.npz", "one").shape) == (images.dtype, ())
    assert np.array_equal(read_array(tmp_path / "own.npz", "many"), many)


@pytest.mark.parametrize(
    "head",
    [
        header_of("<f4", "(4294967296, 4294967296)"),
        header_of("<f4", "(0, 1180591620717411303424)"),
        header_of("<f4", f"({'9' * 5000},)"),
        header_of("<f4", f"({'1, ' * 99})"),
        header_of("<f4", "(2, 3"),
        header_of("<f4", "(1 2,)"),
        header_of("<f4", "(2.0,)"),
        header_of("<U0", "(2,)"),
        header_of("<U9999999", "(2,)"),
        header_of("<U99999999999999999", "(2,)"),
        header_of("M8[xs]", "(1,)"),
        header_of("<M8[25s]", "(1,)"),
        header_of("f4,f4", "(1,)"),
        header_of("(2,)f4", "(1,)"),
        header_of("\x1b[2J", "(1,)"),
        header_of("|V8", "(1,)"),
        header_of("<c8", "(1,)"),
        b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
        b"{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }",
        b"[" * 9000,
        b"__import__('os').system('touch owned')",
        b"\xff",
        b"",
    ],
)
def test_a_header_of_no_plain_numbers_is_a_printable_error(tmp_path: Path, head: bytes) -> None:
    with pytest.raises(DataError) as caught:
        read_array(write_file(tmp_path, zipped({"x.npy": array(head)})), "x")
    assert str(caught.value).isprintable()
    assert "own.npz" in str(caught.value)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("kind", ["|O", "O", "<O"])
def test_refuses_pickled_objects_whatever_follows(tmp_path: Path, kind: str) -> None:
    evil = b"cos\nsystem\n(S'touch owned'\ntR."
    path = write_file(tmp_path, zipped({"x.npy": array(header_of(kind, "()"), evil)}))
    with pytest.raises(DataError, match="never unpickled"):
        read_array(path, "x")


def test_refuses_strings_that_are_not_unicode(tmp_path: Path) -> None:
    for kind, letter in (("<U1", "<I"), (">U1", ">I")):
        for code, is_text in ((0x10FFFF, True), (0x110000, False)):
            content = struct.pack(letter, 0x61) + struct.pack(letter, code)
            path = write_file(
                tmp_path, zipped({"x.npy": array(header_of(kind, "(2,)"), content)})
            )
            if is_text:
                assert read_array(path, "x").tolist() == ["a", "\U0010ffff"]
                continue
            with pytest.raises(DataError, match="strings that are not Unicode"):
                read_array(path, "x")


def damaged_lzma() -> bytes:
    """Return a zip whose array is packed by LZMA and damaged."""
    content = bytearray(zip_of(zipfile.ZIP_LZMA))
    start = content.find(b"x.npy") + len("x.npy")
    content[start + 12 : start + 30] = b"\xff" * 18
    return bytes(content)


def far_away() -> bytes:
    """Return a zip whose only array starts after the end of the file."""
    content, start = zip_of(zipfile.ZIP_STORED), zip_of(zipfile.ZIP_STORED).find(b"PK\x01\x02")
    entry = bytearray(content[start : start + 46 + len("x.npy")])
    place = struct.pack("<HHQ", 1, 8, 2**64 - 1)
    struct.pack_into("<H", entry, 30, len(place))
    struct.pack_into("<I", entry, 42, 2**32 - 1)
    end = bytearray(content[start + len(entry) :])
    struct.pack_into("<I", end, 12, len(entry) + len(place))
    return content[:start] + bytes(entry) + place + bytes(end)


def changed_zip(method: int, place: int, value: int) -> bytes:
    """Return a zip with a changed field in its directory and in the header of its array."""
    content = bytearray(zip_of(method))
    struct.pack_into("<H", content, content.find(b"PK\x01\x02") + place, value)
    struct.pack_into("<H", content, place - 2, value)
    return bytes(content)


def test_reads_other_compression_methods(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = write_file(tmp_path, zip_of(method))
        assert read_array(path, "x").tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "content",
    [
        far_away(),
        # With a wrong method, encrypted, and with an unknown method.
        changed_zip(zipfile.ZIP_DEFLATED, 10, zipfile.ZIP_LZMA),
        changed_zip(zipfile.ZIP_STORED, 10, zipfile.ZIP_BZIP2),
        changed_zip(zipfile.ZIP_STORED, 8, 1),
        changed_zip(zipfile.ZIP_STORED, 10, 77),
        damaged_lzma(),
        zip_of(zipfile.ZIP_STORED).replace(bytes(8), bytes([1] * 8)),
        zipped({"x": array(header_of("<f4", "(2,)"))}),
        b"",
    ],
)
def test_a_zip_that_python_cannot_read_is_a_data_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match=r"own.npz cannot be read as .npz \(.+\): get a new"):
        read_array(write_file(tmp_path, content), "x")


def test_names_of_arrays_are_escaped_and_shortened_in_errors(tmp_path: Path) -> None:
    names = ["\x1b]0;owned\x07.npy", "\u202e.npy", *(f"{n}-{'x' * 90}.npy" for n in range(99))]
    path = write_file(tmp_path, zipped(dict.fromkeys(names, b"")))
    with pytest.raises(DataError, match="has no array 'x'") as caught:
        read_array(path, "x")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 2000


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 0.999), flip=st.floats(0, 0.999), mask=st.integers(0, 255))
def test_a_damaged_file_is_a_data_error_or_harmless(
    path: Path, cut: float, flip: float, mask: int
) -> None:
    content = path.read_bytes()
    truncated = path.with_name("truncated.npz")
    truncated.write_bytes(content[: int(cut * len(content))])
    with pytest.raises(DataError, match="truncated"):
        read_array(truncated, "x")
    flipped = path.with_name("flipped.npz")
    place = int(flip * len(content))
    changed = bytes([content[place] ^ mask])
    flipped.write_bytes(content[:place] + changed + content[place + 1 :])
    with contextlib.suppress(DataError):
        read_array(flipped, "x")


@pytest.mark.parametrize("names", [("a", "a"), ("",), ("a\nb",), ("\x1b[31m",), ("x" * 101,)])
def test_refuses_names_that_are_not_printable_short_or_different(
    names: tuple[str, ...],
) -> None:
    with pytest.raises(DataError, match="name"):
        checked_names("file", "names", names)
