"""What the headers of a file of Arrow declare, read before any of it is unpacked."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import final

from overheard.core.errors import DataError
from overheard.disk.limits import SMALL_FILE, refuse_large

HEADER = 2
"""The place of the header in the metadata of a message; see Arrow's Message.fbs."""

ROWS, ARRAYS, COMPRESSION = 0, 1, 3
"""The places of facts in the header of a batch of rows."""

ROW_BYTES = 512
"""Bytes of memory that a row takes beside its numbers, as a tensor of its own."""

ARRAY_BYTES = 512
"""Bytes of memory that a batch takes, and each array in it, beside its numbers; 300 were
measured."""

WITHOUT_COMPRESSION = (
    "`datasets` saves batches of rows without compression and dictionaries: save the dataset "
    "again by its save_to_disk"
)


@final
@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """What a file declares.

    Args:
        rows: number of rows.
        arrays: number of batches and of the arrays in them.

    """

    rows: int
    arrays: int

    @property
    def memory(self) -> int:
        """The bytes that it takes beside its numbers."""
        return ROW_BYTES * self.rows + ARRAY_BYTES * self.arrays


def read_headers(file: Path, content: bytes) -> DeclaredTable:
    """Return what a stream of Arrow declares.

    Rows of nulls take no bytes, compressed ones take few, and a batch without rows takes more
    memory than bytes.

    Args:
        file: the file, for messages.
        content: its bytes.

    Raises:
        DataError: if its columns take too much memory, or a batch is packed.
        ValueError: if it is damaged; so are Arrow's errors and `struct.error`.

    """
    import pyarrow as pa

    rows = arrays = 0
    for message in pa.ipc.MessageReader.open_stream(content):
        metadata = message.metadata.to_pybytes()
        if message.type == "schema":
            # Columns take ten times as much memory as their names.
            refuse_large(f"{file}: the header", len(metadata), DataError, part=SMALL_FILE)
            continue
        header = _follow(metadata, _place(metadata, _follow(metadata, 0), HEADER))
        if message.type != "record batch" or _place(metadata, header, COMPRESSION):
            raise DataError(f"{file}: {WITHOUT_COMPRESSION}")
        place = _place(metadata, header, ROWS)
        declared = struct.unpack_from("<q", metadata, place)[0] if place else 0
        if declared < 0:
            raise ValueError(f"a batch of {declared} rows")
        rows += declared
        place = _place(metadata, header, ARRAYS)
        count = struct.unpack_from("<I", metadata, _follow(metadata, place))[0] if place else 0
        arrays += 1 + count
    return DeclaredTable(rows, arrays)


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
