"""Data in the form of LEAF: JSON with the examples of each user."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float32, Shaped

from overheard.core.errors import DataError
from overheard.core.escape import escape_unprintable
from overheard.data.reading.arrays import checked_names
from overheard.data.reading.tables import MAX_COLUMNS
from overheard.disk.limits import ARRAY, TABLE, refuse_large
from overheard.disk.reading import parse_json, read_small_file

if TYPE_CHECKING:  # pyarrow is large, and most audits read no table
    import pyarrow

SUFFIX = ".json"

LABEL, USER, TEXT = "label", "user", "x"
"""Columns of the table that texts become."""

NUMBER_BYTES = 8

MAX_FILES = 10_000
"""The most files of a folder."""

FORM = (
    "{'users': [...], 'num_samples': [...], 'user_data': {user: {'x': [...], 'y': [...]}}}, as "
    "LEAF writes it"
)

CHANNELS = (1, 3)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafData:
    """The examples of all users.

    Args:
        arrays: inputs "x", labels "y" and users "user", as in an `.npz`, if inputs are numbers.
        table: inputs, labels and users as texts, if inputs are texts; None = they are numbers.
        texts: the columns of texts.

    """

    arrays: Mapping[str, Shaped[np.ndarray, "examples ..."]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    table: "pyarrow.Table | None" = None
    texts: tuple[str, ...] = ()


def is_leaf(reference: str) -> bool:
    """Return whether a path is a `.json` file, or a folder with such files and no folders.

    Images by class often come with a `.json` file that describes them.
    """
    path = Path(reference)
    if not path.is_dir():
        return path.suffix == SUFFIX
    if any(one.is_dir() and not one.name.startswith(".") for one in path.iterdir()):
        return False
    # A folder that Hugging Face's datasets saved has its state in such a file.
    return not (path / "state.json").is_file() and any(path.glob(f"*{SUFFIX}"))


def read_leaf(path: Path, image_side: int | None = None) -> LeafData:
    """Read a `.json` file of LEAF, or all such files in a folder.

    Args:
        path: the file or folder.
        image_side: height and width of the images that rows of numbers become, which are put
            in a row line by line, with the channels of a pixel together; None = inputs stay
            rows of numbers.

    Raises:
        DataError: if a file has another form or is too large, or inputs are neither numbers
            nor texts.

    """
    files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if len(files) > MAX_FILES:
        raise DataError(f"{path} has {len(files)} files, more than {MAX_FILES}: join them")
    inputs, labels, users = list[object](), list[object](), list[str]()
    size, is_text = 0, False
    for file in files:
        for user, xs, ys in _users(file):
            if not users and xs:
                is_text = _is_text(xs[0])
            if is_text:
                inputs += xs
            elif xs:
                rows = _rows(file, user, xs)
                size += NUMBER_BYTES * rows.size
                refuse_large(f"{path}: its inputs", size, DataError, part=ARRAY)
                inputs.append(rows)
            labels += ys
            users += [user] * len(xs)
    if not users:
        raise DataError(f"{path} has no example: get a new copy")
    if is_text:
        return _table(path, inputs, labels, users)
    arrays = _arrays(path, inputs, image_side)
    return LeafData(
        MappingProxyType({"x": arrays, "y": _labels(path, labels), "user": np.array(users)})
    )


def read_leaf_table(path: Path, _: int = 1) -> "tuple[pyarrow.Table, tuple[str, ...]]":
    """Return the table of texts in a file or folder of LEAF; raise as `read_leaf`.

    Raises:
        DataError: also if inputs are numbers.

    """
    table = read_leaf(path).table
    if table is None:
        raise DataError(
            f"{path}: its inputs are numbers, and no texts that a tokenizer takes: leave out "
            "the tokenizer"
        )
    return table, ()


def _users(file: Path) -> Iterator[tuple[str, list[object], list[object]]]:
    """Yield each user of a file, with its inputs and labels."""
    content = read_small_file(file, DataError, inside=file.parent, part=TABLE)
    document = parse_json(content, str(file), DataError, part=TABLE, refuses_nan=True)
    del content
    data = document.get("user_data") if isinstance(document, dict) else None
    if not isinstance(data, dict):
        raise DataError(f"{file} must be {FORM}, but has no user_data: name another file")
    users, counts = document.get("users", [*data]), document.get("num_samples")
    if not isinstance(users, list) or {*map(_plain_text, users)} != {*data}:
        raise DataError(f"{file}: users and the keys of user_data differ: get a new copy")
    stated = dict(
        zip(map(_plain_text, users), counts if isinstance(counts, list) else (), strict=False)
    )
    # An array of names takes as much for each as for the longest.
    checked_names(file, "users", [*data])
    for user, one in data.items():
        xs, ys = (one.get("x"), one.get("y")) if isinstance(one, dict) else (None, None)
        if not isinstance(xs, list) or not isinstance(ys, list) or len(xs) != len(ys):
            raise DataError(
                f"{file}: user {_shown(user)} must have lists x and y of one length: correct it"
            )
        if stated.get(user, len(xs)) != len(xs):
            raise DataError(
                f"{file}: num_samples of user {_shown(user)} is {_shown(stated[user])}, but "
                f"there are {len(xs)} examples: get a new copy"
            )
        yield user, xs, ys


def _is_text(example: object) -> bool:
    """Return whether an input is a text, or has one among several values."""
    if isinstance(example, list):
        return any(isinstance(one, str) for one in example)
    return isinstance(example, str)


def _rows(file: Path, user: str, xs: list[object]) -> Float32[np.ndarray, "examples ..."]:
    try:
        rows = np.asarray(xs)
    except ValueError:
        rows = np.asarray([])
    if rows.dtype.kind not in "iuf" or rows.ndim not in (2, 3, 4) or not rows.size:
        raise DataError(
            f"{file}: the inputs of user {_shown(user)} must be texts, or rows of equally many "
            "numbers. Names of images and lists of words are not read: save arrays in an .npz"
        )
    return rows.astype(np.float32)


def _arrays(
    path: Path, parts: Sequence[object], image_side: int | None
) -> Float32[np.ndarray, "examples ..."]:
    """Return the inputs of all users, as images if their side is stated."""
    try:
        inputs: Float32[np.ndarray, "examples ..."] = np.concatenate(parts)  # type: ignore[arg-type]
    except ValueError as error:
        raise DataError(f"{path}: inputs of users differ in length: get a new copy") from error
    if image_side is None:
        return inputs
    pixels = image_side * image_side
    if inputs.ndim != 2 or inputs.shape[1] not in {pixels * one for one in CHANNELS}:
        raise DataError(
            f"{path}: image_side is {image_side}, so that an input must have {pixels} numbers, "
            f"or {3 * pixels} with colours, but has the shape {inputs.shape[1:]}: correct "
            "image_side"
        )
    images = inputs.reshape(len(inputs), image_side, image_side, -1)
    return np.moveaxis(images, 3, 1)


def _labels(path: Path, labels: list[object]) -> Shaped[np.ndarray, "examples ..."]:
    checked_names(path, "y", [*{one for one in labels if isinstance(one, str)}])
    try:
        cells = np.asarray(labels)
    except ValueError:
        cells = np.asarray([])
    is_mixed = len({isinstance(one, str) for one in labels}) > 1
    if is_mixed or cells.dtype.kind not in "iufU":
        raise DataError(
            f"{path}: labels y must be numbers, names, or rows of numbers: correct them"
        )
    return cells


def _table(
    path: Path, inputs: list[object], labels: list[object], users: list[str]
) -> LeafData:
    import pyarrow as pa

    rows = [one if isinstance(one, list) else [one] for one in inputs]
    width = len(rows[0])
    plain = (str, int, float)
    if any(len(row) != width for row in rows) or not all(
        isinstance(one, plain) for row in (*rows, labels) for one in row
    ):
        raise DataError(
            f"{path}: texts must be one a row, or equally many in each, and labels names or "
            "numbers: save a table with a column of texts"
        )
    if width > MAX_COLUMNS:
        raise DataError(f"{path}: an input may have up to {MAX_COLUMNS} texts: correct it")
    names = (TEXT,) if width == 1 else tuple(f"{TEXT}{number}" for number in range(width))
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    columns |= {LABEL: tuple(labels), USER: tuple(users)}
    try:
        cells = {
            name: pa.array(list(map(str, one)), pa.string()) for name, one in columns.items()
        }
    except UnicodeEncodeError as error:
        raise DataError(f"{path}: a text is no Unicode ({error.reason}): correct it") from error
    return LeafData(table=pa.table(cells), texts=names)


def _plain_text(value: object) -> str:
    """Return a text or number as a text; of anything else, the name of its type."""
    return str(value) if isinstance(value, str | int | float) else type(value).__name__


def _shown(value: object) -> str:
    return repr(escape_unprintable(_plain_text(value)[:40]))
