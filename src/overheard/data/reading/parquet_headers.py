"""What an untrusted Parquet file unpacks to, by its footer and the header of each page.

Arrow trusts both. The footer states sizes that nothing holds to, and Arrow's own types, in a
form whose parts may be used many times over; a few contradictions in it end the process. So it
is written anew, with what a table of plain columns needs. Arrow unpacks a page to the size in
the header of the page, and fails if it has another one. So these sizes are added up first.

Footers and headers are structures in the compact protocol of Thrift.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Union, final

MARK = b"PAR1"

MAX_DEPTH = 16
"""The most structures within each other: Parquet has about 6."""

MAX_ITEMS = 100_000
"""The most items of a list in a footer, such as columns."""

MAX_PAGES = 500_000
"""The most pages of a file, whose headers are read in 5 seconds."""

MAX_HEADER = 2**24
"""The most bytes of a header of a page. It may state the smallest and the largest text."""

STRUCTURE_BYTES = 400
"""Bytes of memory that Arrow takes for a structure of the footer, on average."""

CHECKED_AT_ONCE = 1000
"""Structures between two checks of the memory."""

VALUE_BYTES = 8
"""Bytes of memory that a value of a dictionary takes beside its text."""

TRUE, FALSE, BYTE, INT16, INT32, INT64, FLOAT, TEXT, LIST, SET, STRUCTURE = (
    *range(1, 11),
    12,
)
"""Kinds of values in Thrift."""

VALUES, VALUES_V2, DICTIONARY = 0, 3, 2
"""Kinds of pages."""

DETAILS = MappingProxyType({VALUES: (5, 2), VALUES_V2: (8, 4), DICTIONARY: (7, 2)})
"""By kind of page, the field with its details, and the field of the encoding in them."""

SAFE_ENCODINGS = (0, 2, 3, 4, 5, 8, 9)
"""Numbers of the encodings whose values take no more memory than their page and their number.
The others are of texts: DELTA_LENGTH_BYTE_ARRAY, which states a number of its own, and
DELTA_BYTE_ARRAY, which repeats the start of the text before."""

_Value = Union[int, bytes, "_Structure", "_List"]

_Structure = Mapping[int, tuple[int, _Value]]
"""By number of a field, the kind of its value, and the value."""

_Kept = Mapping[int, "_Kept | None"]
"""Numbers of the fields that are kept, each with those in its structures; None = all."""

_ELEMENT = dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 8, 10))
_COLUMN = {2: None, 3: dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 9, 11))}
_GROUP = {1: _COLUMN, 2: None, 3: None}
_FOOTER: _Kept = {1: None, 2: _ELEMENT, 3: None, 4: _GROUP, 5: None, 6: None}

_NOTES = (TEXT, b"pandas")
"""The key of the notes of pandas, which tell of categories."""


@dataclass(frozen=True, slots=True)
class _List:
    """A list: the kind of its values, and the values."""

    kind: int
    values: Sequence[_Value]


@final
class Footer:
    """The footer of a file.

    Args:
        content: the file.
        check: refuses so many bytes of memory, which its structures take.

    Raises:
        ValueError: if it is damaged.

    """

    def __init__(self, content: bytes, check: Callable[[int], None]) -> None:
        size = int.from_bytes(content[-8:-4], "little")
        self._end = len(content) - 8 - size
        if self._end < 0 or not content.endswith(MARK):
            raise ValueError("it has no footer")
        self._content = content
        reader = _Reader(content, self._end, len(content) - 8, check)
        self._root = dict(reader.structure(_FOOTER))
        self.memory = STRUCTURE_BYTES * reader.structures
        if 5 in self._root:
            notes = [one for one in _structures(self._root, 5) if one.get(1) == _NOTES]
            self._root[5] = LIST, _List(STRUCTURE, notes)

    def plain_file(self) -> bytes:
        """Return the file with a footer of what is needed, and is understood."""
        footer = _written(self._root)
        return b"".join(
            (self._content[: self._end], footer, len(footer).to_bytes(4, "little"), MARK)
        )

    def cells(self) -> int:
        """Return the number of cells of the table.

        Raises:
            ValueError: if the footer contradicts itself.

        """
        columns = sum(5 not in one for one in _structures(self._root, 2))
        groups = _structures(self._root, 4)
        rows = sum(_number(group, 3, INT64) for group in groups)
        if rows != _number(self._root, 3, INT64) or any(
            len(_structures(group, 1)) != columns for group in groups
        ):
            raise ValueError("its footer contradicts itself")
        return rows * columns

    def page_memory(self) -> int:
        """Return the bytes that all pages unpack to.

        Raises:
            ValueError: if the footer or a header is damaged, or if an encoding may take any
                amount of memory.

        """
        memory = pages = 0
        for group in _structures(self._root, 4):
            rows = _number(group, 3, INT64)
            for column in _structures(group, 1):
                stated = _structure(column, 3)
                if _number(stated, 5, INT64) != rows:
                    raise ValueError("its footer contradicts itself")
                start = _number(stated, 9, INT64)
                if (dictionary := _number(stated, 11, INT64, start)) > 0:
                    start = min(start, dictionary)
                # Arrow reads past the end, as some old files state a length that is too small.
                end = min(start + _number(stated, 7, INT64) + 100, self._end)
                seen = 0
                while seen < rows and start < end:
                    page = _read_page(self._content, start, end)
                    memory += page.memory
                    seen += page.values
                    start = page.end
                    pages += 1
                    if pages > MAX_PAGES:
                        raise ValueError(f"it has over {MAX_PAGES} pages: write larger ones")
                if seen > rows:
                    raise ValueError("its pages have more values than its footer states")
        return memory


@dataclass(frozen=True, slots=True)
class _Page:
    memory: int
    values: int
    end: int


def _read_page(content: bytes, start: int, end: int) -> _Page:
    reader = _Reader(content, start, min(start + MAX_HEADER, end))
    page = reader.structure(None)
    packed, unpacked = _number(page, 3, INT32), _number(page, 2, INT32)
    memory, after = max(packed, unpacked), reader.place + packed
    kind = _number(page, 1, INT32)
    if kind not in DETAILS:  # Arrow leaves it out.
        return _Page(memory, 0, after)
    field, encoding = DETAILS[kind]
    details = _structure(page, field)
    if _number(details, encoding, INT32) not in SAFE_ENCODINGS:
        raise ValueError(
            "a column is stored as differences between texts, so that its size is not known: "
            "write it without DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY"
        )
    values = _number(details, 1, INT32)
    if kind == DICTIONARY:
        return _Page(memory + VALUE_BYTES * values, 0, after)
    return _Page(memory, values, after)


def _number(of: _Structure, field: int, kind: int, default: int | None = None) -> int:
    """Return a number that is not below 0."""
    if field not in of and default is not None:
        return default
    found, value = of.get(field, (0, 0))
    # Of a larger number, Arrow would read the last bits.
    most = 2**31 if kind == INT32 else 2**63
    if found != kind or not isinstance(value, int) or not 0 <= value < most:
        raise ValueError(DAMAGED)
    return value


def _structure(of: _Structure, field: int) -> _Structure:
    value = of.get(field, (0, 0))[1]
    if not isinstance(value, Mapping):
        raise ValueError(DAMAGED)
    return value


def _structures(of: _Structure, field: int) -> Sequence[_Structure]:
    found, value = of.get(field, (0, 0))
    if found != LIST or not isinstance(value, _List):
        raise ValueError(DAMAGED)
    values = [one for one in value.values if isinstance(one, Mapping)]
    if len(values) != len(value.values):
        raise ValueError(DAMAGED)
    return values


DAMAGED = "its footer or a header is damaged"


class _Reader:
    """Reads a structure of Thrift, and counts the structures in it.

    Args:
        content: the file.
        place: where the structure starts.
        end: where it ends at the latest.
        check: refuses so many bytes of memory; None = there must be no lists, so that their
            number is limited by the depth and by the fields of a structure.

    """

    def __init__(
        self, content: bytes, place: int, end: int, check: Callable[[int], None] | None = None
    ) -> None:
        self._content = content
        self._end = end
        self._check = check
        self.place = place
        self.structures = 0

    def structure(self, kept: _Kept | None, depth: int = 0) -> _Structure:
        """Return the fields that are kept; None = all."""
        self.structures += 1
        if depth > MAX_DEPTH:
            raise ValueError(DAMAGED)
        if self._check is not None and self.structures % CHECKED_AT_ONCE == 0:
            self._check(STRUCTURE_BYTES * self.structures)
        fields = dict[int, tuple[int, _Value]]()
        number = 0
        while head := self._byte():
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else _signed(self._varint())
            # Arrow would read the last 16 bits, and the last field whose kind is right.
            if number in fields or not 0 < number < 2**15:
                raise ValueError(DAMAGED)
            inner = None if kept is None else kept.get(number)
            value = self._value(kind, inner, depth)
            if kept is None or number in kept:
                fields[number] = kind, value
        return fields

    def _value(self, kind: int, kept: _Kept | None, depth: int) -> _Value:
        if kind in (INT16, INT32, INT64):
            return _signed(self._varint())
        if kind == STRUCTURE:
            return self.structure(kept, depth + 1)
        if kind in (TRUE, FALSE):
            return 0
        if kind in (LIST, SET) and self._check is not None:
            return self._list(kept, depth)
        if kind not in (BYTE, FLOAT, TEXT):
            raise ValueError(DAMAGED)
        size = {BYTE: 1, FLOAT: 8}[kind] if kind != TEXT else self._varint()
        start = self.place
        self.place += size
        if self.place > self._end:
            raise ValueError(DAMAGED)
        return bytes(self._content[start : self.place])

    def _list(self, kept: _Kept | None, depth: int) -> _List:
        head = self._byte()
        count = self._varint() if head >> 4 == 15 else head >> 4
        if count > MAX_ITEMS:
            raise ValueError(f"its footer lists over {MAX_ITEMS} items")
        # In a list, a boolean is a byte.
        kind = BYTE if head & 15 in (TRUE, FALSE) else head & 15
        return _List(kind, [self._value(kind, kept, depth) for _ in range(count)])

    def _byte(self) -> int:
        if self.place >= self._end:
            raise ValueError(DAMAGED)
        self.place += 1
        return self._content[self.place - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) > 127:
            value |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError(DAMAGED)
        return value | byte << shift


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _written(structure: _Structure) -> bytes:
    """Return a structure of Thrift."""
    parts = list[bytes]()
    for number, (kind, value) in structure.items():
        parts += (bytes([kind]), _varint(2 * number))
        if kind not in (TRUE, FALSE):
            parts.append(_written_value(kind, value))
    return b"".join((*parts, b"\0"))


def _written_value(kind: int, value: _Value) -> bytes:
    if isinstance(value, int):
        return _varint(2 * value if value >= 0 else -2 * value - 1)
    if isinstance(value, bytes):
        return (_varint(len(value)) if kind == TEXT else b"") + value
    if isinstance(value, _List):
        head = bytes([0xF0 | value.kind]) + _varint(len(value.values))
        return head + b"".join(_written_value(value.kind, one) for one in value.values)
    return _written(value)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes((*parts, number))
