"""What the corpus does to an input: the classes of hostile bytes, and of hostile files.

A class is what an attacker does, such as `link` or `nesting`. A change is one instance of it,
at one place of one input.
"""

import gzip
import io
import json
import os
import struct
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w
import torch
from safetensors.torch import load, save

REFUSED = frozenset({"clean error"})
"""The command must end with one message that names the input."""

SAME = frozenset({"same result"})
"""The command must do what it does with the intact input."""

READ_OR_REFUSED = frozenset({"clean error", "same result", "harmless"})
"""The input may be valid: it is read as it is, and nothing in it acts; or it is refused."""

CONTROL = "\x1b]0;owned\x07\x1b[2J\u202e"
HTML = "<script>alert(1)</script><img src=x onerror=alert(1)>"
MARKDOWN = "](javascript:alert(1)) | `a` **b** \\"
FORMULA = "=cmd|' /C calc'!A0"

NAMES = MappingProxyType(
    {
        "import": (
            "os:abort", "received:f", "recording.received:f", "Own(reference='received:f')",
        ),
        "escapes": (CONTROL, "[red]x[/red][/]"),
        "html": (HTML, "a\nb\r\nc"),
        "markdown": (MARKDOWN,),
        "formula": (FORMULA, "@SUM(1)", "+1", "-1"),
        "path parts": (
            "../../outside/victim", "/etc/passwd", "C:\\Windows\\x", "NUL", "a/../../b", ".",
            "~",
        ),
        "long name": ("x" * 10_000, "x" * 3_000_000),
        "surrogate": ("\ud800",),
        "null": ("a\0b",),
    }
)  # fmt: skip
"""Texts in place of a text or of a name, by class."""

VALUES = MappingProxyType(
    {
        "out of range": ("-1", "1e308", "NaN", "Infinity", "1e400", "9223372036854775808", "0"),
        "digits": ("9" * 100_000, "9" * 4_299),
        "nesting": ("[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "0" + "}" * 100_000),
        "wrong type": ("null", "true", "[]", "{}", '"text"', "1.5", "[[1]]"),
    }
)
"""JSON in place of any value, by class."""

MANY = 1_000_000

MOST_BYTES = 20_000_000
"""Most bytes of a document with many items."""

MARK = "@hostile@"


@dataclass(frozen=True)
class Change:
    """One hostile change of an input.

    Args:
        kind: its class.
        name: what it is, in a few words.
        apply: makes it, given the path of the input.
        ends: how the command may end.
        environment: environment variables of the command.
        unpacked: the bytes that the limits let the input unpack to; None = not known.

    """

    kind: str
    name: str
    apply: Callable[[Path], None]
    ends: frozenset[str] = REFUSED
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    unpacked: int | None = None


def written(kind: str, name: str, content: bytes, ends: frozenset[str] = REFUSED) -> Change:
    """Return the change that writes this content."""
    return Change(kind, name, lambda path: _overwrite(path, content), ends)


def appended(kind: str, name: str, unit: bytes, count: int) -> Change:
    """Return the change that writes so many units after the intact content."""

    def apply(path: Path) -> None:
        with path.open("ab") as file:
            file.write(unit * count)

    return Change(kind, name, apply, READ_OR_REFUSED)


def _overwrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _outside(path: Path) -> Path:
    """Return the folder outside of the working directory that holds precious files."""
    return next(one for one in path.parents if (one / "outside").is_dir()) / "outside"


def link_out(path: Path) -> None:
    """Replace an input by a link to an intact copy outside."""
    target = _outside(path) / f"elsewhere-{path.name}"
    path.rename(target)
    path.symlink_to(target)


def link_folder_out(path: Path) -> None:
    """Replace the folder above an input by a link to an intact copy outside."""
    link_out(path.parent)


def link_to(target: str, path: Path) -> None:
    """Replace an input by a link to this path."""
    path.unlink()
    path.symlink_to(target)


def pipe(path: Path) -> None:
    """Replace an input by a pipe to which nobody writes."""
    path.unlink()
    os.mkfifo(path)


def folder_instead(path: Path) -> None:
    """Replace an input by a folder of its name."""
    path.unlink()
    path.mkdir()


def grow_sparsely(size: int, path: Path) -> None:
    """Lengthen an input without using the disk."""
    os.truncate(path, size)


def files(
    *, is_named: bool, is_optional: bool, has_folder: bool, may_be_empty: bool
) -> Iterator[Change]:
    """Iterate over what may stand in place of any file.

    Args:
        is_named: whether the user names the file itself, so that a link to a file may be meant.
        is_optional: whether the input may be missing.
        has_folder: whether the folder above the file is a part of the input, too.
        may_be_empty: whether a file without a byte is valid.

    """
    out = READ_OR_REFUSED if is_named else REFUSED
    missing = READ_OR_REFUSED if is_optional else REFUSED
    yield Change("link", "to a copy outside", link_out, out)
    yield Change("link", "to /etc/passwd", partial(link_to, "/etc/passwd"))
    yield Change("link", "to nowhere", partial(link_to, "nowhere"), missing)
    yield Change("link", "to itself", lambda path: link_to(path.name, path), missing)
    if has_folder:
        yield Change("link", "of the folder above", link_folder_out)
    yield Change("device", "/dev/zero", partial(link_to, "/dev/zero"))
    yield Change("pipe", "without a writer", pipe)
    yield Change("wrong kind of file", "a folder", folder_instead)
    yield Change("missing", "no file", Path.unlink, missing)
    yield Change("sparse", "2^40 bytes", partial(grow_sparsely, 2**40))
    yield written("empty", "no byte", b"", READ_OR_REFUSED if may_be_empty else REFUSED)


def bytes_of_text(content: bytes, *, ends: frozenset[str]) -> Iterator[Change]:
    """Iterate over damage to the bytes of a text file."""
    for share in (2, 3, 50):
        yield written("truncated", f"after 1/{share}", content[: len(content) // share], ends)
    yield written("truncated", "of its last byte", content.rstrip()[:-1], READ_OR_REFUSED)
    yield written("invalid UTF-8", "at its end", content + b"\xff\xfe\xfa", ends)
    middle = len(content) // 2
    yield written("invalid UTF-8", "in it", content[:middle] + b"\xff" + content[middle:], ends)
    yield written("BOM", "before it", b"\xef\xbb\xbf" + content, READ_OR_REFUSED)
    yield written("BOM", "UTF-16", content.decode().encode("utf-16"), ends)
    yield written("null", "999 of them", b"\0" * 999, ends)
    yield written("null", "in it", content[:middle] + b"\0" + content[middle:], ends)
    yield appended("large", "50 MB of blanks", b" " * 64, 800_000)
    yield appended("large", "a million lines", b"\n", MANY)


# Documents of JSON and TOML


Path_ = tuple[str | int, ...]


def places(value: object, path: Path_ = ()) -> Iterator[tuple[Path_, object]]:
    """Iterate over all values of a document, lists and tables included."""
    if path:
        yield path, value
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, key))


def _inside(copy: object, path: Path_) -> object:
    for key in path[:-1]:
        copy = copy[key]  # type: ignore[index]
    return copy


def _replaced(document: object, path: Path_, value: object) -> object:
    copy = json.loads(json.dumps(document))
    _inside(copy, path)[path[-1]] = value  # type: ignore[index]
    return copy


def _renamed(document: object, path: Path_, name: str) -> object:
    copy = json.loads(json.dumps(document))
    table = _inside(copy, path)
    table[name] = table.pop(path[-1])  # type: ignore[index,attr-defined]
    return copy


@dataclass(frozen=True)
class Documents:
    """How a kind of document is written: JSON, a line of JSON, or TOML."""

    read: Callable[[bytes], object]
    write: Callable[[object, str], bytes]
    """Write a document, with the mark replaced by this text."""
    has_nulls: bool = True


def _as_json(document: object, mark: str) -> bytes:
    return json.dumps(document).replace(json.dumps(MARK), mark).encode("utf-8", "replace")


def _as_toml(document: object, mark: str) -> bytes:
    text = tomli_w.dumps(document)  # type: ignore[arg-type]
    return text.replace(json.dumps(MARK), mark).encode("utf-8", "surrogatepass")


JSON = Documents(json.loads, _as_json)


def lines(number: int, content: bytes) -> Documents:
    """Return how the line of this number is replaced in lines of JSON."""
    others = content.splitlines()

    def write(document: object, mark: str) -> bytes:
        new = _as_json(document, mark)
        return b"\n".join([*others[:number], new, *others[number + 1 :]]) + b"\n"

    return Documents(lambda _: json.loads(others[number]), write)


def _from_toml(content: bytes) -> object:
    # Dates become texts.
    return json.loads(json.dumps(tomllib.loads(content.decode()), default=str))


TOML = Documents(_from_toml, _as_toml, has_nulls=False)


def documents(content: bytes, form: Documents) -> Iterator[Change]:
    """Iterate over changes of a document, at each of its places."""
    document = form.read(content)
    # Of the items of a list, one place of each kind.
    kinds = {
        tuple("*" if isinstance(key, int) else key for key in path): (path, value)
        for path, value in reversed(list(places(document)))
    }
    for path, value in reversed(kinds.values()):
        for kind, texts in NAMES.items():
            for text in texts:
                if isinstance(value, str):
                    yield _value(form, document, kind, path, _quoted(text))
                if isinstance(path[-1], str):
                    yield _name(form, document, kind, path, text)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        for kind, values in VALUES.items():
            for new in values:
                if is_number or kind not in ("out of range", "digits"):
                    ends = REFUSED if len(new) > 5_000 else READ_OR_REFUSED
                    yield _value(form, document, kind, path, new, ends)
        yield from _many(form, document, path, value)
    yield from _roots()
    if form.has_nulls and isinstance(document, dict):
        once = json.dumps(document)
        doubled = _as_json(MARK, f"{once[:-1]},{once[1:]}")
        yield written("duplicate", "every name twice", doubled, READ_OR_REFUSED)


def _many(form: Documents, document: object, path: Path_, value: object) -> Iterator[Change]:
    """Iterate over changes of a list or of a table to a long one."""
    if isinstance(value, list) and value:
        item = json.dumps(value[0])
        count = min(MANY, MOST_BYTES // len(item))
        text = partial(_long_list, item, count)
        yield _long(form, document, "many items", path, f"{count} items", text)
        yield _value(form, document, "duplicate", path, json.dumps([*value, value[0]]))
    if isinstance(value, dict) and form.has_nulls:
        item = json.dumps(next(iter(value.values()), 1))
        # Each of many clients is work of its own.
        count = min(200_000, MOST_BYTES // 100 // len(item))
        text = partial(_long_table, item, count)
        yield _long(form, document, "many names", path, f"{count} names", text)


def _long_list(item: str, count: int) -> str:
    return f"[{','.join([item] * count)}]"


def _long_table(item: str, count: int) -> str:
    return "{" + ",".join(f'"n{number}":{item}' for number in range(count)) + "}"


def _long(
    form: Documents,
    document: object,
    kind: str,
    path: Path_,
    name: str,
    text: Callable[[], str],
) -> Change:
    def apply(file: Path) -> None:
        _write_value(form, document, path, text(), file)

    return Change(kind, f"{_at(path)} with {name}", apply, READ_OR_REFUSED)


def _roots() -> Iterator[Change]:
    """Iterate over values in place of a whole document."""
    for root in ("[]", "{}", "null", "1", '"a"', "[[1]]", "true"):
        yield written("wrong type", f"{root} in place of all", root.encode(), READ_OR_REFUSED)
    for name, deep in (("[", b"[" * 100_000), ('{"a":', b'{"a":' * 100_000)):
        yield written("nesting", f"100,000 times {name}", deep)
    yield written("nesting", "TOML", b"a" + b".a" * 100_000 + b" = 1")
    yield written("digits", "100,000 in place of all", b"9" * 100_000)
    yield written("digits", "100,000 in TOML", b"a = " + b"9" * 100_000)


@cache
def _quoted(text: str) -> str:
    return json.dumps(text)


def _at(path: Path_) -> str:
    return "/".join(map(str, path))


def _short(text: str) -> str:
    return text if len(text) < 30 else f"{text[:12]}... ({len(text)})"


def _value(
    form: Documents,
    document: object,
    kind: str,
    path: Path_,
    value: str,
    ends: frozenset[str] = READ_OR_REFUSED,
) -> Change:
    apply = partial(_write_value, form, document, path, value)
    return Change(kind, f"{_at(path)} = {_short(value)!a}", apply, ends)


def _write_value(
    form: Documents, document: object, path: Path_, value: str, file: Path
) -> None:
    file.write_bytes(form.write(_replaced(document, path, MARK), value))


def _name(form: Documents, document: object, kind: str, path: Path_, name: str) -> Change:
    def apply(file: Path) -> None:
        file.write_bytes(form.write(_renamed(document, path, name), ""))

    return Change(kind, f"{_at(path)} is named {_short(name)!a}", apply, READ_OR_REFUSED)


# Tensors and arrays


def header(entries: object, data: bytes = b"\0" * 64) -> bytes:
    """Return a file of tensors with this header."""
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype: str, shape: list[int], length: int) -> dict[str, object]:
    """Return the entry of a tensor in a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [0, length]}


def safetensors(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a file of tensors."""
    tensors = load(content)
    first = next(iter(tensors))
    for name, entries in {
        "2^60 elements": {first: tensor("F32", [2**60], 2**62)},
        "a product beyond 64 bits": {first: tensor("F32", [2**33, 2**33], 64)},
        "negative": {first: tensor("F32", [-1], 64)},
        "more data than there are": {first: tensor("F32", [400], 1600)},
        "an unknown type": {first: tensor("F31", [16], 64)},
        "offsets that overlap": {
            first: tensor("F32", [16], 64), "other": tensor("F32", [16], 64),
        },
        "no tensor": {},
    }.items():  # fmt: skip
        yield written("lying header", name, header(entries))
    for size in (2**31, 2**60, 2**63, 2**64 - 1):
        lying = struct.pack("<Q", size) + content[8:]
        yield written("lying header", f"a header of {size} bytes", lying)
    digits = f'{{"{first}":{{"dtype":"F32","shape":[{"9" * 100_000}],"data_offsets":[0,64]}}}}'
    yield written("digits", "in a shape", header(digits.encode()))
    nested = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    yield written("nesting", "in the header", header(nested))
    empty = {f"n{number}": tensor("F32", [0], 0) for number in range(100_000)}
    yield written("many names", "100,000 tensors", header(empty, b""))
    dimensions = {first: tensor("F32", [1] * 100_000, 4)}
    yield written("many items", "100,000 dimensions", header(dimensions, b"\0" * 4))
    for kind, texts in NAMES.items():
        for text in texts:
            if kind != "surrogate":
                named = save({**tensors, text: torch.ones(2)})
                yield written(kind, f"a tensor {_short(text)!a}", named, READ_OR_REFUSED)
    for value in (float("nan"), float("inf"), 3e38):
        wrong = {**tensors, first: torch.full_like(tensors[first], value)}
        yield written("out of range", f"all {value}", save(wrong), READ_OR_REFUSED)
    other = {name: one.to(torch.float64) for name, one in tensors.items()}
    yield written("wrong type", "float64", save(other), READ_OR_REFUSED)
    whole = {name: one.to(torch.int64) for name, one in tensors.items()}
    yield written("wrong type", "int64", save(whole), READ_OR_REFUSED)
    yield written("wrong type", "text", b"text", REFUSED)
    yield from cut(content)


def cut(content: bytes) -> Iterator[Change]:
    """Iterate over parts of a file, and over the file with a flipped bit."""
    for place in (1, 7, 9, len(content) // 2, len(content) - 1):
        yield written("truncated", f"after {place} bytes", content[:place])
    yield written("null", "999 of them", b"\0" * 999)
    for place in range(0, len(content), max(1, len(content) // 8)):
        flipped = bytearray(content)
        flipped[place] ^= 0x10
        yield written("flipped bit", f"in byte {place}", bytes(flipped), READ_OR_REFUSED)


def array(head: bytes, numbers: bytes = b"\0" * 8) -> bytes:
    """Return an array of an `.npz` with any header."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + numbers


def zipped(entries: dict[str, bytes]) -> bytes:
    """Return an archive with these entries."""
    page = io.BytesIO()
    with zipfile.ZipFile(page, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return page.getvalue()


def _shaped(shape: bytes) -> bytes:
    """Return the header of an array with this shape."""
    return b"{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + b", }"


def npz(content: bytes) -> Iterator[Change]:
    """Iterate over changes of an archive of arrays."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    first = next(iter(entries))
    for name, head in {
        "2^64 elements in digits": _shaped(b"(4294967296, 4294967296)"),
        "2^40 elements": _shaped(b"(1099511627776,)"),
        "negative": _shaped(b"(-1,)"),
        "pickled objects": b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "code": b"__import__('os').system('touch RAN')",
        "no dictionary": b"[]",
    }.items():  # fmt: skip
        yield written("lying header", name, zipped({**entries, first: array(head)}))
    nested = array(b"[" * 60_000)
    yield written("nesting", "in a header", zipped({**entries, first: nested}))
    digits = _shaped(b"(" + b"9" * 60_000 + b",)")
    yield written("digits", "in a shape", zipped({**entries, first: array(digits)}))
    yield Change(
        "unpack ratio",
        "1.2 GB of zeros",
        lambda path: _zip_with_zeros(path, entries, first),
        READ_OR_REFUSED,
    )
    many = {f"n{number}.npy": entries[first] for number in range(20_000)}
    yield Change(
        "many names",
        "20,000 arrays",
        lambda path: _overwrite(path, zipped({**entries, **many})),
        READ_OR_REFUSED,
    )
    for kind, texts in NAMES.items():
        for text in texts:
            # The length of a name in an archive has 16 bits.
            if kind not in ("surrogate", "null") and len(text) < 60_000:
                named = zipped({**entries, f"{text}.npy": entries[first]})
                yield written(kind, f"an array {_short(text)!a}", named, READ_OR_REFUSED)
    page = io.BytesIO(content)
    with zipfile.ZipFile(page, "a") as archive:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive.writestr(first, entries[first])
    yield written("duplicate", "an array twice", page.getvalue(), READ_OR_REFUSED)
    yield written("wrong type", "text", b"text")
    yield from cut(content)


def _zip_with_zeros(path: Path, entries: dict[str, bytes], name: str) -> None:
    """Write an archive with these entries, one of them an array of 300 million zeros."""
    shape = {"descr": "<f4", "fortran_order": False, "shape": (300_000_000,)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in entries.keys() - {name}:
            archive.writestr(one, entries[one])
        with archive.open(name, "w") as file:
            np.lib.format.write_array_header_1_0(file, shape)
            for _ in range(1000):
                file.write(bytes(1_200_000))


# Tables


def csv(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a table in text."""
    names, _, rows = content.partition(b"\n")
    first, last = rows.split(b"\n")[0], names.split(b",")[-1]
    for kind, texts in NAMES.items():
        for text in texts:
            raw = text.encode("utf-8", "surrogatepass").replace(b'"', b'""')
            cell = first.replace(b"ward 0", b'"' + raw + b'"')
            yield written(
                kind,
                f"a cell {_short(text)!a}",
                names + b"\n" + cell + b"\n" + rows,
                READ_OR_REFUSED,
            )
            yield written(
                kind,
                f"a column {_short(text)!a}",
                content.replace(b"ward", b'"' + raw + b'"', 1),
                READ_OR_REFUSED,
            )
    for value in ("NaN", "1e400", "-1e308", "inf", "9" * 100_000):
        cells = first.split(b",")
        cells[0] = value.encode()
        kind = "digits" if len(value) > 99 else "out of range"
        new = names + b"\n" + b",".join(cells) + b"\n" + rows
        yield written(kind, f"a number {_short(value)}", new, READ_OR_REFUSED)
    wide = b",".join(b"c%d" % number for number in range(100_000))
    yield written(
        "many names", "100,000 columns", wide + b"," + last + b"\n" + b"1," * 100_000 + b"a\n"
    )
    yield written("many items", "a row of a million cells", names + b"\n" + b"1," * MANY)
    yield written(
        "many items", "200,000 rows", content + (first + b"\n") * 200_000, READ_OR_REFUSED
    )
    yield written("duplicate", "a column twice", names + b",label\n" + rows, READ_OR_REFUSED)
    yield written(
        "contradiction",
        "a row that is too long",
        content + first + b",1,2,3\n",
        READ_OR_REFUSED,
    )
    yield written("contradiction", "a quote that never ends", content + b'"', READ_OR_REFUSED)
    yield written("wrong type", "JSON", b'{"label": 1}')


def sheets(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a workbook."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    entity = (
        b'<!DOCTYPE x [<!ENTITY a "'
        + b"a" * 1000
        + b'">'
        + b"".join(
            b'<!ENTITY %c "%s">' % (98 + place, b"&%c;" % (97 + place) * 100)
            for place in range(5)
        )
        + b"]><worksheet>&f;</worksheet>"
    )
    for kind, name, data in (
        ("unpack ratio", "300 MB of zeros", b"\0" * 300_000_000),
        ("nesting", "entities of entities", entity),
        ("nesting", "a million tags", b"<a>" * 1_000_000),
        ("wrong type", "no XML", b"text"),
    ):
        yield written(kind, name, zipped({**members, sheet: data}), READ_OR_REFUSED)
    yield written("wrong type", "text", b"text", READ_OR_REFUSED)
    yield from cut(content)


def blank_separated(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a table whose cells are separated by blanks."""
    head, _, rows = content.partition(b"\n")
    for kind, texts in NAMES.items():
        for text in texts:
            raw = b'"' + text.encode("utf-8", "surrogatepass").replace(b'"', b'""') + b'"'
            cell = b" ".join((raw, *rows.split(b"\n")[0].split(b" ")[1:]))
            new = head + b"\n" + cell + b"\n" + rows
            yield written(kind, f"a cell {_short(text)!a}", new, READ_OR_REFUSED)
    wide = b" ".join(b"c%d" % number for number in range(100_000))
    numbers = b"\n" + b"1 " * 100_000
    yield written("many names", "100,000 columns", wide + 3 * numbers)
    # Of one line, a sample is all that is looked at.
    yield written("many items", "a million cells in a line", b"1 " * MANY)
    few = b"1 2\n" * MANY
    yield written("many items", "a million rows", few, READ_OR_REFUSED)
    yield written(
        "many items", "a million blanks", head + b" " * MANY + b"\n" + rows, READ_OR_REFUSED
    )
    yield written("truncated", "a quote that is never closed", head + b'\n"' + rows)


def arff(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a table in ARFF."""
    for kind, name, data in (
        ("many items", "a million rows", content + b"20,1.0,a\n" * 1_000_000),
        ("wrong type", "texts", content.replace(b"crp numeric", b"crp string")),
        ("many names", "20,000 columns", b"@attribute x numeric\n" * 20_000 + content),
        ("digits", "in a cell", content + b"9" * 100_000 + b",1,a\n"),
    ):
        yield written(kind, name, data, READ_OR_REFUSED)
    # A part of a text may be a shorter table, and a changed letter another one.
    yield written("null", "999 of them", b"\0" * 999)
    yield written("truncated", "in its head", content[:30])


def packed_csv(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a packed table."""
    text = gzip.decompress(content)
    for name, size in (("2 GB of zeros", 2**31), ("300 MB of zeros", 300 * 2**20)):
        yield Change("unpack ratio", name, partial(write_packed, b"\0", size, b""))
    rows = text.split(b"\n", 1)[1]
    yield Change("unpack ratio", "2 GB of rows", partial(write_packed, rows, 2**31, text))
    yield written(
        "contradiction", "a second member", content + gzip.compress(b"x" * 99), READ_OR_REFUSED
    )
    yield written("contradiction", "bytes after its end", content + b"x" * 99, READ_OR_REFUSED)
    yield written("wrong type", "not packed", text, READ_OR_REFUSED)
    for change in csv(text):
        if change.kind in ("escapes", "digits", "many names"):
            yield Change(change.kind, change.name, partial(_write_gzip, change), change.ends)
    yield from cut(content)


def _write_gzip(change: Change, path: Path) -> None:
    change.apply(path)
    path.write_bytes(gzip.compress(path.read_bytes(), 1))


def write_packed(unit: bytes, size: int, start: bytes, path: Path) -> None:
    """Write a packed file with a start, and then so many bytes of a unit."""
    block = unit * max(1, 2**20 // len(unit))
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(size // len(block)):
            file.write(block)


def parquet(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a table in Parquet."""
    table = pq.read_table(io.BytesIO(content))
    for kind, texts in NAMES.items():
        for text in texts:
            if kind == "surrogate":
                continue
            wards = pa.array([text, *table["ward"].to_pylist()[1:]])
            place = table.column_names.index("ward")
            yield Change(
                kind,
                f"a cell {_short(text)!a}",
                partial(_write_parquet, table.set_column(place, "ward", wards)),
                READ_OR_REFUSED,
            )
            yield Change(
                kind,
                f"a column {_short(text)!a}",
                partial(_write_parquet, table.append_column(text, wards)),
                READ_OR_REFUSED,
            )
    yield Change("unpack ratio", "10^8 rows of one text", _write_repeated)
    yield Change("unpack ratio", "a dictionary of one text of 10 MB", _write_dictionary)
    yield Change("many names", "20,000 columns", _write_wide, READ_OR_REFUSED)
    nested: pa.Array = pa.array([1])
    for _ in range(200):
        nested = pa.StructArray.from_arrays([nested], ["a"])
    deep = pa.table({"label": pa.array(["a"]), "x": nested})
    yield Change("nesting", "200 structures", partial(_write_parquet, deep), READ_OR_REFUSED)
    lying = content[:-8] + struct.pack("<I", 2**31 - 1) + content[-4:]
    yield written("lying header", "a footer of 2 GB", lying)
    yield written("lying header", "a footer of no byte", content[:-8] + b"\0\0\0\0PAR1")
    yield written("wrong type", "text", b"text")
    yield from cut(content)


def _write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path)


def _write_wide(path: Path) -> None:
    columns = {f"c{number}": pa.array([1]) for number in range(20_000)}
    _write_parquet(pa.table({"label": pa.array(["a"]), **columns}), path)


def _write_repeated(path: Path) -> None:
    block = pa.table(
        {"age": pa.repeat(pa.scalar(1), 10**7), "label": pa.repeat("a" * 40, 10**7)}
    )
    with pq.ParquetWriter(path, block.schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(block)


def _write_dictionary(path: Path) -> None:
    """Write a column whose dictionary has one text of 10 MB, which 20,000 rows repeat."""
    codes = pa.array(np.zeros(20_000, np.int32))
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 10_000_000]))
    table = pa.table({"age": codes, "note": column, "label": pa.repeat("a", 20_000)})
    pq.write_table(table, path, compression="zstd")


# Source code


def python(content: bytes) -> Iterator[Change]:
    """Iterate over changes of source code that is read."""
    yield written("nesting", "100,000 brackets", b"x = " + b"(" * 100_000, READ_OR_REFUSED)
    yield written("nesting", "100,000 signs", b"x = " + b"-" * 100_000 + b"1", READ_OR_REFUSED)
    yield written("nesting", "5,000 attributes", b"x = a" + b".a" * 5_000, READ_OR_REFUSED)
    yield written(
        "nesting",
        "99 indented blocks",
        b"".join(b" " * n + b"if 1:\n" for n in range(99)) + b" " * 99 + b"1\n",
        READ_OR_REFUSED,
    )
    digits = content + b"\nx = " + b"9" * 100_000 + b"\n"
    yield written("digits", "a number", digits, READ_OR_REFUSED)
    # In a function that nobody calls, since the app is code that the user named.
    power = content + b"\ndef other():\n    return 9 ** 9 ** 9\n"
    yield written("out of range", "a power", power, READ_OR_REFUSED)
    many = b"".join(b"class C%d(nn.Module): ...\n" % n for n in range(20_000))
    yield written(
        "many names", "20,000 classes", b"from torch import nn\n" + many, READ_OR_REFUSED
    )
    yield written("wrong type", "no code", b"\x7fELF" + b"\0" * 99, READ_OR_REFUSED)
    yield written(
        "escapes", "in a text", content + f"\nx = {CONTROL!r}\n".encode(), READ_OR_REFUSED
    )
    yield written(
        "escapes", "in a comment", content + f"\n# {CONTROL}\n".encode(), READ_OR_REFUSED
    )


# MessagePack


def messagepack(content: bytes) -> Iterator[Change]:
    """Iterate over changes of parameters in MessagePack."""
    yield written("nesting", "100,000 lists", b"\x91" * 100_000 + b"\x90")
    yield written("nesting", "100,000 maps", b"\x81\xa1a" * 100_000 + b"\x80")
    yield written("lying header", "a list of 2^32 items", b"\xdd\xff\xff\xff\xff")
    yield written("lying header", "a map of 2^32 names", b"\xdf\xff\xff\xff\xff")
    yield written("lying header", "4 GB of bytes", b"\xc6\xff\xff\xff\xff")
    yield written(
        "many items", "a million numbers", b"\xdd" + struct.pack(">I", MANY) + b"\x01" * MANY
    )
    names = b"".join(b"\xa6%06d\x01" % number for number in range(200_000))
    yield written("many names", "200,000", b"\xdf" + struct.pack(">I", 200_000) + names)
    yield written("wrong type", "an extension", b"\xc7\x04\x05abcd")
    yield written("wrong type", "a number", b"\x01")
    yield from cut(content)
