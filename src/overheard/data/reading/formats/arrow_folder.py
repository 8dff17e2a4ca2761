"""Columns of a folder that Hugging Face's `datasets` saved, read without its library."""

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import DataError
from overheard.data.reading.formats.arrow_headers import read_headers
from overheard.data.reading.parquet_tables import is_text
from overheard.disk.limits import TABLE, refuse_large
from overheard.disk.reading import parse_json, read_small_file

if TYPE_CHECKING:  # pyarrow is large, and most audits read no table
    import pyarrow

NUMBER_BYTES = 8

STATE = "state.json"
"""The file by which a folder is known that Hugging Face's datasets saved."""

INFO = "dataset_info.json"
"""The file that states the features of a dataset."""

DICTIONARY = "dataset_dict.json"
"""The file by which a folder is known that holds several datasets, such as train and test."""

TRAIN = "train"
"""The usual name of the dataset to learn from."""

LONGEST_NAME = 255
"""The most characters of the name of a file."""


@final
@dataclass(frozen=True, slots=True)
class ArrowColumns:
    """The columns of a saved dataset that were asked for.

    Args:
        path: the folder.
        names: of all columns.
        columns: those asked for, by name.

    """

    path: Path
    names: tuple[str, ...]
    columns: "Mapping[str, pyarrow.ChunkedArray]"

    def is_of_rows(self, name: str) -> bool:
        """Return whether each value of a column is a list."""
        import pyarrow as pa

        kind = self.columns[name].type
        tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        return any(test(kind) for test in tests)

    def integers(self, name: str) -> Tensor:
        """Return the whole numbers of a column.

        Raises:
            DataError: if it has other values.

        """
        import pyarrow as pa

        column = self.columns[name]
        if is_text(column.type):
            raise DataError(
                f"{self.path}: the column {name} has texts, but must have numbers of classes: "
                f'before you save the dataset, call dataset.class_encode_column("{name}")'
            )
        if not pa.types.is_integer(column.type):
            kind = printable_excerpt(str(column.type))
            raise DataError(
                f"{self.path}: the column {name} has values of type {kind}, but must have "
                "whole numbers: convert it before you save the dataset"
            )
        self._refuse_nulls(name, column.null_count)
        return torch.from_numpy(column.to_numpy().astype("int64"))

    def rows(self, name: str) -> Sequence[Tensor]:
        """Return the whole numbers in each list of a column.

        Raises:
            DataError: if it has other values, or too many.

        """
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.columns[name]
        inner = column.type.value_type if self.is_of_rows(name) else pa.null()
        if not pa.types.is_integer(inner):
            kind = printable_excerpt(str(column.type))
            raise DataError(
                f"{self.path}: the column {name} has values of type {kind}, but must have a "
                "list of whole numbers for each text: convert it before you save the dataset"
            )
        flat = pc.list_flatten(column)
        self._refuse_nulls(name, column.null_count + flat.null_count)
        what = f"{self.path}: the column {name}"
        refuse_large(what, NUMBER_BYTES * len(flat), DataError, part=TABLE)
        lengths: list[int] = pc.list_value_length(column).to_numpy().tolist()
        return torch.split_with_sizes(
            torch.from_numpy(flat.to_numpy().astype("int64")), lengths
        )

    def texts(self, name: str) -> Sequence[str]:
        """Return the texts of a column.

        Raises:
            DataError: if it has other values.

        """
        column = self.columns[name]
        if not is_text(column.type):
            kind = printable_excerpt(str(column.type))
            raise DataError(
                f"{self.path}: the column {name} has values of type {kind}, but must have "
                "texts: name another by --text"
            )
        self._refuse_nulls(name, column.null_count)
        texts: list[str] = column.to_pylist()
        return texts

    def cells(self, name: str) -> Sequence[str]:
        """Return the values of a column as texts; an empty one is "".

        Raises:
            DataError: if values have no text, or are numbers that are not finite.

        """
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.columns[name]
        if pa.types.is_floating(column.type):
            count = pc.sum(pc.invert(pc.is_finite(column))).as_py()
            if count:
                raise DataError(
                    f"{self.path}: the column {name} has numbers that are not finite, such as "
                    f"NaN, in {count} of its rows: drop those rows"
                )
        try:
            cells: list[str] = column.cast(pa.large_string()).fill_null("").to_pylist()
        except pa.ArrowException as error:
            raise DataError(
                f"{self.path}: the column {name} must have a name or a number in each row"
            ) from error
        return cells

    def _refuse_nulls(self, name: str, count: int) -> None:
        if count:
            raise DataError(
                f"{self.path}: the column {name} has {count} empty values: before you save the "
                "dataset, remove the column, or keep the rows that have a value, by "
                f'dataset.filter(lambda row: row["{name}"] is not None)'
            )


def is_arrow_folder(reference: str) -> bool:
    """Return whether a path is a folder that `datasets.Dataset.save_to_disk` wrote."""
    return (Path(reference) / STATE).is_file()


def refuse_several_datasets(path: Path) -> None:
    """Refuse a folder that `datasets.DatasetDict.save_to_disk` wrote.

    Raises:
        DataError: if it is one; it names a dataset to take.

    """
    if not (path / DICTIONARY).is_file():
        return
    parts = sorted(one.parent.name for one in path.glob(f"*/{STATE}"))
    if not parts:
        raise DataError(f"{path} is to hold several datasets, and has none: save it again")
    usual = TRAIN if TRAIN in parts else parts[0]
    raise DataError(
        f"{path} holds the datasets {printable_excerpt(', '.join(parts))}: name one of them, "
        f"such as {printable_excerpt(str(path / usual))}"
    )


def read_arrow_folder(path: Path, wanted: frozenset[str]) -> ArrowColumns:
    """Read columns of the files that `datasets.Dataset.save_to_disk` wrote.

    Only the files that `state.json` names are read: methods such as `map` leave others in the
    same folder.

    Args:
        path: the folder.
        wanted: the columns to read, of those that there are.

    Raises:
        DataError: if a file is damaged, is compressed, takes too much memory, links to outside
            of the folder, or has other columns than the first, or a wanted column has values
            of another kind than numbers, texts, bytes and lists of them.

    """
    import pyarrow as pa

    tables, size, names = list[pa.Table](), 0, tuple[str, ...]()
    for file in _data_files(path):
        content = read_small_file(file, DataError, inside=path, part=TABLE)
        try:
            declared = read_headers(file, content)
            size += len(content) + declared.memory
            what = f"{file}: the table of {declared.rows} rows"
            refuse_large(what, size, DataError, part=TABLE)
            found = pa.ipc.open_stream(content).read_all()
            names = tuple(found.column_names)
            if len(set(names)) < len(names):
                raise DataError(f"{file} has a column twice: rename one, and save it again")
            found = found.select([one for one in names if one in wanted])
            for field in found.schema:
                _refuse_unusual(file, field)
            # Offsets beyond the numbers would end the process.
            found.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, struct.error) as error:
            why = printable_excerpt(str(error))
            raise DataError(f"{file} cannot be read ({why}): save the dataset again") from error
        if tables and not found.schema.equals(tables[0].schema):
            raise DataError(
                f"{file} has other columns, or other types, than the files before it: keep the "
                "files of one dataset in the folder"
            )
        tables.append(found)
    table = pa.concat_tables(tables)
    return ArrowColumns(path, names, dict(zip(table.column_names, table.columns, strict=True)))


def _data_files(path: Path) -> list[Path]:
    """Return the files of a saved dataset in their order, all of them in its folder."""
    file = path / STATE
    state = parse_json(read_small_file(file, DataError), str(file), DataError)
    listed = state.get("_data_files") if isinstance(state, dict) else None
    files = listed if isinstance(listed, list) else []
    names = [one.get("filename") if isinstance(one, dict) else None for one in files]
    if not names or not all(map(_is_data_file, names)):
        raise DataError(
            f"{file} must name .arrow files of its own folder in _data_files: save the dataset "
            "again by its save_to_disk"
        )
    if len(set(names)) < len(names):
        raise DataError(f"{file} names a file twice: save the dataset again")
    return [path / str(name) for name in names]


def _is_data_file(name: object) -> bool:
    """Return whether this names a file of the folder that it stands in."""
    return (
        isinstance(name, str)
        and len(name) <= LONGEST_NAME
        and name.isprintable()
        and name.endswith(".arrow")
        and not {"/", "\\", ":"} & set(name)
    )


def _refuse_unusual(file: Path, field: "pyarrow.Field") -> None:
    """Refuse values whose size says nothing of the memory that they take when they are read.

    Texts that are views, and runs of one value, may be many times larger than their file.

    Raises:
        DataError: if a column has other values than numbers, texts, bytes and lists of them.

    """
    if not _is_usual(field.type):
        raise DataError(
            f"{file}: the column {printable_excerpt(field.name)} has values of type "
            f"{printable_excerpt(str(field.type))}, which are not read: cast it to numbers or "
            "texts (dataset.cast_column), or drop it, and save the dataset again"
        )


def _is_usual(kind: "pyarrow.DataType") -> bool:
    import pyarrow as pa

    of = pa.types
    if of.is_list(kind) or of.is_large_list(kind) or of.is_fixed_size_list(kind):
        return _is_usual(kind.value_type)
    if of.is_struct(kind):
        return all(_is_usual(kind.field(place).type) for place in range(kind.num_fields))
    tests = (of.is_primitive, of.is_decimal, of.is_null, is_text, of.is_binary)
    return any(test(kind) for test in (*tests, of.is_large_binary, of.is_fixed_size_binary))


# Any: JSON has values of any type.
def read_features(path: Path) -> Mapping[str, Any]:
    """Return the features that the folder states; empty = it states none.

    Raises:
        DataError: if they are damaged, too large, or link to outside of the folder.

    """
    file = path / INFO
    if not os.path.lexists(file):
        return {}
    content = parse_json(read_small_file(file, DataError), str(file), DataError)
    features = content.get("features") if isinstance(content, dict) else ()
    if features is not None and not isinstance(features, dict):
        raise DataError(f"{file} must have an object of features: save the dataset again")
    return features or {}


def stated_class_names(features: Mapping[str, Any], label: str) -> object:
    """Return what features state as the names of the classes of a column; None = nothing."""
    stated = features.get(label)
    return stated.get("names") if isinstance(stated, dict) else None


def checked_class_names(path: Path, names: object, largest: int) -> tuple[str, ...]:
    """Return names of classes, as a dataset states them; () = none.

    Args:
        path: the dataset, for messages.
        names: what is stated; None = nothing.
        largest: the largest number of a class among the labels.

    Raises:
        DataError: if they are no texts that differ, or are too few for the labels.

    """
    if names is None:
        return ()
    is_of_texts = isinstance(names, list) and all(isinstance(one, str) for one in names)
    if not isinstance(names, list) or not is_of_texts or len(set(names)) < len(names):
        raise DataError(
            f"{path}: the names of its classes must be texts that differ: name the classes "
            "anew (datasets.ClassLabel), and save the dataset again"
        )
    if names and largest >= len(names):
        raise DataError(
            f"{path}: a label is {largest}, but {len(names)} classes have names: save the "
            "dataset again"
        )
    return tuple(names)
