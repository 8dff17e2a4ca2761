import contextlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overheard.core.errors import DataError
from overheard.data.arrays import (
    LARGEST,
    array_names,
    checked_names,
    read_array,
    read_names,
    read_numbers,
    read_pixels,
)


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
