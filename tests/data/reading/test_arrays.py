import contextlib
import io
import struct
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overheard.core.errors import DataError
from overheard.data.reading.arrays import (
    LARGEST,
    array_names,
    checked_names,
    read_array,
    read_names,
    read_numbers,
    read_pixels,
)
from tests.archive.hostile_exports import array, lying, zipped

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
    """An `.npz` whose only array, x, says of itself what it likes."""
    stream = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", stream.getvalue() + content)
    return path


def test_arrays_are_read_as_they_were_written(path: Path) -> None:
    assert array_names(path) == {"x", "y", "real", "names"}
    assert read_array(path, "real").tolist() == [0.5, 1.0, 2.0]
    assert read_pixels(path, "x", (4, 4)).shape == (3, 4, 4)
    assert read_numbers(path, "y", below=3, examples=3).tolist() == [0, 1, 2]
    assert read_names(path, "names") == ("a", "b", "c")


def test_a_missing_array_is_told_with_those_there_are(path: Path) -> None:
    with pytest.raises(DataError, match="no array 'z', only names, real, x, y"):
        read_array(path, "z")


def test_images_of_another_shape_are_refused(path: Path) -> None:
    with pytest.raises(DataError, match=r"set.npz: 'x' must be uint8 of shape"):
        read_pixels(path, "x", (5, 5))


@pytest.mark.parametrize(("name", "below", "count"), [("y", 2, 3), ("y", 3, 2), ("real", 3, 3)])
def test_labels_that_are_none_are_refused(
    path: Path, name: str, below: int, count: int
) -> None:
    with pytest.raises(DataError, match=f"'{name}' must"):
        read_numbers(path, name, below=below, examples=count)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="never unpickled"):
        read_array(tmp_path / "evil.npz", "x")


def test_an_array_that_promises_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = with_header(tmp_path / "bomb.npz", (LARGEST + 1,), "|u1", b"")
    with pytest.raises(DataError, match="at most"):
        read_array(path, "x")


def test_an_array_longer_or_shorter_than_its_header_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"123456"):
        path = with_header(tmp_path / "short.npz", (5,), "|u1", content)
        with pytest.raises(DataError, match="not as long as its header says"):
            read_array(path, "x")


def test_a_negative_length_is_refused(tmp_path: Path) -> None:
    path = with_header(tmp_path / "negative.npz", (-1, -5), "|u1", b"12345")
    with pytest.raises(DataError):
        read_array(path, "x")


def held(tmp_path: Path, content: bytes) -> Path:
    """A file with this content."""
    (tmp_path / "own.npz").write_bytes(content)
    return tmp_path / "own.npz"


@contextlib.contextmanager
def in_little_memory() -> Iterator[None]:
    """No more than 8 MiB are taken at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_header_of_megabytes_is_not_read(tmp_path: Path) -> None:
    head = b" " * (32 * MIB)
    path = held(tmp_path, zipped({"x.npy": array(head, version=b"\x02\x00")}))
    with in_little_memory(), pytest.raises(DataError, match="its header has 33554432 bytes"):
        read_array(path, "x")


def plain(kind: str, shape: str) -> bytes:
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()


@pytest.mark.slow
def test_an_array_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path: Path) -> None:
    numbers = 64 * MIB + 1
    bomb = array(plain("|u1", f"({numbers},)"), b"\0" * numbers)
    path = held(tmp_path, zipped({"x.npy": bomb, "y.npy": array(plain("<f4", "(2,)"))}))
    with in_little_memory(), pytest.raises(DataError, match=r"'x' has .* numpy.savez, not"):
        read_array(path, "x")
    assert read_array(path, "y").tolist() == [0.0, 0.0]


TWO = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


def packed(method: int, head: bytes = TWO) -> bytes:
    """A zip of one array, of two zeros whatever it says."""
    page = io.BytesIO()
    with zipfile.ZipFile(page, "w", method) as archive:
        archive.writestr("x.npy", array(head))
    return page.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_zip_that_lies_of_its_sizes_takes_no_memory(tmp_path: Path, method: int) -> None:
    head = plain("<f4", f"({256 * MIB},)")
    content = bytearray(lying(packed(method, head), 10 + len(head) + 1024 * MIB))
    # So many bytes it is packed to.
    struct.pack_into("<I", content, content.find(b"PK\x01\x02") + 20, 1024 * MIB)
    with in_little_memory(), pytest.raises(DataError, match="and unpacks to 1073741"):
        read_array(held(tmp_path, bytes(content)), "x")


def test_what_may_be_packed_tight_is_read_whatever_its_order(tmp_path: Path) -> None:
    images = np.asfortranarray(np.arange(24, dtype=">i4").reshape(2, 3, 4))
    # A hundred to one, and small.
    many = np.zeros(4 * MIB, np.uint8)
    np.savez_compressed(tmp_path / "own.npz", images=images, many=many, one=np.float64(7))
    read = read_array(tmp_path / "own.npz", "images")
    assert np.array_equal(read, images)
    assert (read.dtype, read_array(tmp_path / "own.npz", "one").shape) == (images.dtype, ())
    assert np.array_equal(read_array(tmp_path / "own.npz", "many"), many)


@pytest.mark.parametrize(
    "head",
    [
        plain("<f4", "(4294967296, 4294967296)"),
        plain("<f4", "(0, 1180591620717411303424)"),
        plain("<f4", f"({'9' * 5000},)"),
        plain("<f4", f"({'1, ' * 99})"),
        plain("<f4", "(2, 3"),
        plain("<f4", "(1 2,)"),
        plain("<f4", "(2.0,)"),
        plain("<U0", "(2,)"),
        plain("<U9999999", "(2,)"),
        plain("<U99999999999999999", "(2,)"),
        plain("M8[xs]", "(1,)"),
        plain("<M8[25s]", "(1,)"),
        plain("f4,f4", "(1,)"),
        plain("(2,)f4", "(1,)"),
        plain("\x1b[2J", "(1,)"),
        plain("|V8", "(1,)"),
        plain("<c8", "(1,)"),
        b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
        b"{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }",
        b"[" * 9000,
        b"__import__('os').system('touch owned')",
        b"\xff",
        b"",
    ],
)
def test_a_header_that_is_none_of_plain_numbers_is_an_error_that_prints(
    tmp_path: Path, head: bytes
) -> None:
    with pytest.raises(DataError) as caught:
        read_array(held(tmp_path, zipped({"x.npy": array(head)})), "x")
    assert str(caught.value).isprintable()
    assert "own.npz" in str(caught.value)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("kind", ["|O", "O", "<O"])
def test_what_is_pickled_is_refused_whatever_follows(tmp_path: Path, kind: str) -> None:
    evil = b"cos\nsystem\n(S'touch owned'\ntR."
    path = held(tmp_path, zipped({"x.npy": array(plain(kind, "()"), evil)}))
    with pytest.raises(DataError, match="never unpickled"):
        read_array(path, "x")


def test_words_that_are_no_text_are_refused_before_anybody_reads_them(tmp_path: Path) -> None:
    for kind, letter in (("<U1", "<I"), (">U1", ">I")):
        for code, is_text in ((0x10FFFF, True), (0x110000, False)):
            content = struct.pack(letter, 0x61) + struct.pack(letter, code)
            path = held(tmp_path, zipped({"x.npy": array(plain(kind, "(2,)"), content)}))
            if is_text:
                assert read_array(path, "x").tolist() == ["a", "\U0010ffff"]
                continue
            with pytest.raises(DataError, match="what is no text"):
                read_array(path, "x")


def spoilt_lzma() -> bytes:
    """A zip whose array is packed by LZMA, and damaged."""
    content = bytearray(packed(zipfile.ZIP_LZMA))
    start = content.find(b"x.npy") + len("x.npy")
    content[start + 12 : start + 30] = b"\xff" * 18
    return bytes(content)


def far_away() -> bytes:
    """A zip whose only array begins behind the end of all files."""
    content, start = packed(zipfile.ZIP_STORED), packed(zipfile.ZIP_STORED).find(b"PK\x01\x02")
    entry = bytearray(content[start : start + 46 + len("x.npy")])
    place = struct.pack("<HHQ", 1, 8, 2**64 - 1)
    struct.pack_into("<H", entry, 30, len(place))
    struct.pack_into("<I", entry, 42, 2**32 - 1)
    end = bytearray(content[start + len(entry) :])
    struct.pack_into("<I", end, 12, len(entry) + len(place))
    return content[:start] + bytes(entry) + place + bytes(end)


def altered(method: int, place: int, value: int) -> bytes:
    """A zip with other bits in the entry of its directory, and in that of its array."""
    content = bytearray(packed(method))
    struct.pack_into("<H", content, content.find(b"PK\x01\x02") + place, value)
    struct.pack_into("<H", content, place - 2, value)
    return bytes(content)


def test_other_ways_to_pack_are_read_too(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = held(tmp_path, packed(method))
        assert read_array(path, "x").tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "content",
    [
        far_away(),
        # Packed by what it is not, encrypted, and packed by nobody knows what.
        altered(zipfile.ZIP_DEFLATED, 10, zipfile.ZIP_LZMA),
        altered(zipfile.ZIP_STORED, 10, zipfile.ZIP_BZIP2),
        altered(zipfile.ZIP_STORED, 8, 1),
        altered(zipfile.ZIP_STORED, 10, 77),
        spoilt_lzma(),
        packed(zipfile.ZIP_STORED).replace(bytes(8), bytes([1] * 8)),
        zipped({"x": array(plain("<f4", "(2,)"))}),
        b"",
    ],
)
def test_a_zip_that_python_stumbles_over_is_a_data_error(
    tmp_path: Path, content: bytes
) -> None:
    with pytest.raises(DataError, match=r"own.npz cannot be read as .npz \(.+\): get a new"):
        read_array(held(tmp_path, content), "x")


def test_names_of_arrays_command_no_terminal_and_fill_no_page(tmp_path: Path) -> None:
    names = ["\x1b]0;owned\x07.npy", "\u202e.npy", *(f"{n}-{'x' * 90}.npy" for n in range(99))]
    path = held(tmp_path, zipped(dict.fromkeys(names, b"")))
    with pytest.raises(DataError, match="has no array 'x'") as caught:
        read_array(path, "x")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 2000


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cut=st.floats(0, 0.999), flip=st.floats(0, 0.999), mask=st.integers(0, 255))
def test_a_damaged_file_is_a_data_error_that_names_it_or_no_harm(
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
def test_names_unfit_to_be_shown_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match="name"):
        checked_names("file", "names", names)
