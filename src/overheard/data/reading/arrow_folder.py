"""Columns of a folder that Hugging Face's `datasets` saved, read without its library."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import DataError
from overheard.data.reading.parquet_tables import is_text
from overheard.disk.limits import TABLE, refuse_large
from overheard.disk.reading import parse_json, read_small_file

if TYPE_CHECKING:  # pyarrow is large, and most audits read no table
    import pyarrow

ROW_BYTES = 512
"""Bytes of memory that a row takes beside its numbers, as a tensor of its own."""

NUMBER_BYTES = 8

HEADER = 2
"""The place of the header in the metadata of a message; see Arrow's Message.fbs."""

ROWS, COMPRESSION = 0, 3
"""The places of facts in the header of a batch of rows."""

WITHOUT_COMPRESSION = (
    "`datasets` saves batches of rows without compression and dictionaries: save the dataset "
    "again by its save_to_disk"
)


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
        """Return the values of a column as texts; an empty one is ""."""
        import pyarrow as pa

        column = self.columns[name]
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


def read_arrow_folder(path: Path, wanted: frozenset[str]) -> ArrowColumns:
    """Read columns of the files that `datasets.Dataset.save_to_disk` wrote.

    Args:
        path: the folder.
        wanted: the columns to read, of those that there are.

    Raises:
        DataError: if a file is damaged, is compressed, takes too much memory, links to outside
            of the folder, or has other columns than the first.

    """
    import pyarrow as pa

    tables, size, names = list[pa.Table](), 0, tuple[str, ...]()
    for file in sorted(path.glob("*.arrow")):
        content = read_small_file(file, DataError, inside=path, part=TABLE)
        try:
            rows = _declared_rows(file, content)
            size += len(content) + ROW_BYTES * rows
            refuse_large(f"{file}: the table of {rows} rows", size, DataError, part=TABLE)
            found = pa.ipc.open_stream(content).read_all()
            names = tuple(found.column_names)
            if len(set(names)) < len(names):
                raise DataError(f"{file} has a column twice: rename one, and save it again")
            found = found.select([one for one in names if one in wanted])
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
    if not tables:
        raise DataError(f"{path} has no .arrow file: save the dataset again")
    table = pa.concat_tables(tables)
    return ArrowColumns(path, names, dict(zip(table.column_names, table.columns, strict=True)))


def _declared_rows(file: Path, content: bytes) -> int:
    """Return the rows that the headers of a file declare, of which none is unpacked.

    Rows of nulls take no bytes, and compressed ones few: so headers are read first.
    """
    import pyarrow as pa

    count = 0
    for message in pa.ipc.MessageReader.open_stream(content):
        if message.type == "schema":
            continue
        metadata = message.metadata.to_pybytes()
        header = _follow(metadata, _place(metadata, _follow(metadata, 0), HEADER))
        if message.type != "record batch" or _place(metadata, header, COMPRESSION):
            raise DataError(f"{file}: {WITHOUT_COMPRESSION}")
        place = _place(metadata, header, ROWS)
        count += struct.unpack_from("<q", metadata, place)[0] if place else 0
    return count


def _follow(metadata: bytes, place: int) -> int:
    """Return where a part starts that a FlatBuffer refers to; pyarrow has checked it."""
    start: int = place + struct.unpack_from("<I", metadata, place)[0]
    return start


def _place(metadata: bytes, table: int, field: int) -> int:
    """Return where a field of a table of a FlatBuffer is; 0 = it has its default."""
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    slot = 4 + 2 * field
    if slot >= struct.unpack_from("<H", metadata, fields)[0]:
        return 0
    offset = struct.unpack_from("<H", metadata, fields + slot)[0]
    return table + offset if offset else 0


# Any: JSON has values of any type.
def read_features(path: Path) -> Mapping[str, Any]:
    """Return the features that the folder states; empty = none that can be read."""
    file = path / "dataset_info.json"
    try:
        content = parse_json(read_small_file(file, DataError), str(file), DataError)
        features = content["features"] if file.is_file() else {}
    except (DataError, OSError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}
