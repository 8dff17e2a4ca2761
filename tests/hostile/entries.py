"""Where bytes enter from outside, each with the commands that read them.

The table of SECURITY.md has a row for each, of the same name.
"""

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from tests.hostile import changes as change
from tests.hostile import model_files as models
from tests.hostile import saved_datasets
from tests.hostile.changes import READ_OR_REFUSED, REFUSED, SAME, Change

CPU = ("--device", "cpu", "--workers", "1", "--quiet")

SHOW = ("show", "recording", "--verify")
IMPORT = ("import", "exported", "--out", "new")
IMPORT_EXPERIMENT = ("import", "experiment", "--out", "new")
AUDIT = ("audit", "plan.toml", "--out", "new", *CPU)
AUDIT_RECORDING = ("audit", "plan.toml", "--transcript", "simulated", "--out", "new", *CPU)
RESUME = ("audit", "plan.toml", "--out", "audit", *CPU)
INIT = ("init", "made/new.toml", "--from-recording", "foreign")
INIT_LISTED = (
    "init", "made/new.toml", "--from-recording", "named", "--data", "digits.npz",
    "--candidates", "listed.npz",
)  # fmt: skip
INIT_JOB = ("init", "made/new.toml", "--simulate", "--nvflare", "job")
REVIEW_JOB = ("review", "job", "--out", "made/page.html")
CHECK = ("check", "audit/findings.json", "--policy", "policy.toml")
EVIDENCE = ("evidence", "audit")
VERIFY = ("verify", "audit")


def plan_check(plan: str) -> tuple[str, ...]:
    """Return the command that looks into a plan."""
    return ("plan", "check", plan, "--no-estimate")


@dataclass(frozen=True)
class Entry:
    """A place where bytes enter.

    Args:
        row: its row in the table of SECURITY.md.
        file: the input that is changed, relative to the working directory; "." = each change
            names its own.
        changes: iterates over its changes, given the intact content.
        commands: the commands that read it.
        parts: what the commands need of the workspace.
        writes: what the commands may write.
        results: what of it must be the same; () = all.
        fine: exit codes of a command that has read the input.
        is_named: whether the user names the file itself.
        is_optional: whether it may be missing.
        has_folder: whether the folder above it was received, too.
        is_told: whether a file that cannot be read is told, and the others are read.
        may_import: folders of code that the user named.
        aliases: further names in messages about it.
        environment: further environment variables.

    """

    row: str
    file: str
    changes: Callable[[bytes], Iterator[Change]]
    commands: tuple[tuple[str, ...], ...]
    parts: tuple[str, ...]
    writes: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    fine: frozenset[int] = frozenset({0})
    is_named: bool = False
    is_optional: bool = False
    has_folder: bool = False
    is_told: bool = False
    may_import: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def all_changes(self, workspace: Path) -> Iterator[Change]:
        """Iterate over all changes of this entry."""
        if self.file == ".":
            yield from self.changes(b"")
            return
        content = (workspace / self.file).read_bytes()
        places = change.files(
            is_named=self.is_named,
            is_optional=self.is_optional,
            has_folder=self.has_folder,
            may_be_empty=self.file.endswith((".toml", ".py", ".conf")),
        )
        for one in places:
            yield replace(one, ends=READ_OR_REFUSED) if self.is_told else one
        yield from self.changes(content)


def text_document(form: change.Documents, content: bytes) -> Iterator[Change]:
    """Iterate over changes of a document and of its bytes."""
    yield from change.bytes_of_text(content, ends=REFUSED)
    yield from change.documents(content, form)


def json_document(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a file with JSON."""
    return text_document(change.JSON, content)


def toml_document(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a file with TOML."""
    for one in text_document(change.TOML, content):
        # A part of a file with TOML may be one, too, and no byte is one.
        is_cut = one.kind == "truncated"
        yield replace(one, ends=READ_OR_REFUSED) if is_cut else one


def message_lines(content: bytes) -> Iterator[Change]:
    """Iterate over changes of messages: of each line, and of the list of them."""
    lines = content.splitlines(keepends=True)
    yield from change.bytes_of_text(content, ends=REFUSED)
    for number in range(len(lines)):
        yield from change.documents(content, change.lines(number, content))
    for number in range(4):
        new = _without(lines, number)
        yield change.written("contradiction", f"no line {number}", new, READ_OR_REFUSED)
    for number in range(4):
        # A missing reply holds nothing, so that twice is as good as once.
        ends = READ_OR_REFUSED if b'"missing"' in lines[number] else REFUSED
        twice = content + lines[number]
        yield change.written("duplicate", f"line {number} twice", twice, ends)
    for_others = content.replace(b'"client/0"', b'"client/7"')
    yield change.written(
        "contradiction", "a client that the manifest lacks", for_others, READ_OR_REFUSED
    )
    blank = lines[0] + b"\n" * change.MANY + b"".join(lines[1:])
    yield change.written("many items", "a million empty lines", blank, READ_OR_REFUSED)
    missing = lines[0] + lines[1] * 200_000 + b"".join(lines[2:])
    yield change.written(
        "many items", "200,000 missing replies of a client", missing, READ_OR_REFUSED
    )


def _without(lines: list[bytes], number: int) -> bytes:
    return b"".join(lines[:number] + lines[number + 1 :])


def recorded_tensors(content: bytes) -> Iterator[Change]:
    """Iterate over changes of tensors whose size and digest the message states rightly."""
    for one in change.safetensors(content):
        yield one
        yield replace(one, name=f"{one.name}, stated", apply=partial(_stated, one))
    yield Change("sparse", "400 MB, stated", _grow_stated)


def _stated(one: Change, path: Path) -> None:
    one.apply(path)
    _state(path, sha256(path.read_bytes()).hexdigest())


def _grow_stated(path: Path) -> None:
    os.truncate(path, 400_000_000)
    _state(path, "0" * 64)


def _state(path: Path, digest: str) -> None:
    """Write size and digest of a file of tensors into its message."""
    listed = path.parent / "messages.jsonl"
    lines = [json.loads(line) for line in listed.read_text().splitlines()]
    for line in lines:
        for stored in line["body"].values():
            if isinstance(stored, dict) and stored.get("name") == path.name:
                stored |= {"size": path.stat().st_size, "sha256": digest}
    listed.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def truth(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a ground truth."""
    yield from json_document(content)
    intact = json.loads(content)
    first = intact["counts"][0]
    for value in ("7.5", "1e308", "-0.1", "NaN"):
        new = _with(intact, accuracy=[{"round": 0, "accuracy": change.MARK}])
        raw = new.replace(json.dumps(change.MARK).encode(), value.encode())
        yield change.written("out of range", f"an accuracy of {value}", raw)
    for name, counts in {
        "counts below 0": [first | {"labels": [-1] * len(first["labels"])}],
        "no count above 0": [first | {"labels": [0] * len(first["labels"])}],
        "more classes than the run has": [first | {"labels": [*first["labels"], 1]}],
        "a round that the run does not have": [first | {"round": 99}],
    }.items():
        yield change.written(
            "out of range", name, _with(intact, counts=counts), READ_OR_REFUSED
        )
    other = first | {"labels": [one + 1 for one in first["labels"]]}
    yield change.written(
        "contradiction", "two counts of a client", _with(intact, counts=[first, other])
    )
    stranger = first | {"party": "client/77"}
    yield change.written(
        "contradiction",
        "counts of a client that the run does not have",
        _with(intact, counts=[*intact["counts"], stranger]),
        READ_OR_REFUSED,
    )


def _with(document: Mapping[str, object], **values: object) -> bytes:
    return json.dumps({**document, **values}).encode()


def findings(content: bytes) -> Iterator[Change]:
    """Iterate over changes of findings."""
    yield from json_document(content)
    intact = json.loads(content)
    yield change.written("contradiction", "no runs", _with(intact, runs=[]), READ_OR_REFUSED)
    for name, value in intact.items():
        if isinstance(value, list) and value:
            yield change.written(
                "contradiction", f"no {name}", _with(intact, **{name: []}), READ_OR_REFUSED
            )


def table(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a table in text, which may have another encoding."""
    yield from change.bytes_of_text(content, ends=READ_OR_REFUSED)
    yield from change.csv(content)


def blanks(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a table whose cells are separated by blanks."""
    yield from change.bytes_of_text(content, ends=READ_OR_REFUSED)
    yield from change.blank_separated(content)


def text_lines(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a file with an object of JSON in each line.

    The command lists the tokenizer's code before it reads the file, so that a refusal is not
    its only output. `tests/data/reading/test_token_data.py` has what is refused.
    """
    yield from change.bytes_of_text(content, ends=READ_OR_REFUSED)
    for one in change.documents(content, change.lines(0, content)):
        yield replace(one, ends=READ_OR_REFUSED)
    for kind, name, line in (
        ("long name", "a line of 100 MB", b'{"text": "%s", "label": 0}' % (b"a" * 10**8)),
        ("many items", "a million short lines", b'{"text": "a", "label": 0}\n' * 10**6),
        ("many items", "a million empty lines", b"\n" * 10**6),
    ):
        yield change.written(kind, name, content + line, READ_OR_REFUSED)
    for kind, name, line in (
        ("duplicate", "a key twice", b'{"text": "a", "text": "b", "label": 0}'),
        ("nesting", "200,000 lists", b'{"text": "a", "x": %s}' % (b"[" * 200_000)),
        ("out of range", "NaN", b'{"text": "a", "label": NaN}'),
        ("out of range", "beyond all numbers", b'{"text": "a", "label": 1e400}'),
    ):
        yield change.written(kind, name, content + line, READ_OR_REFUSED)


def leaf(content: bytes) -> Iterator[Change]:
    """Iterate over changes of data in the form of LEAF."""
    # A part of the examples may still be such data.
    for one in json_document(content):
        yield replace(one, ends=READ_OR_REFUSED)
    first = b'"x": [['
    for name, new in {
        "rows of different lengths": content.replace(first, first + b"1.0, ", 1),
        "numbers beyond 32 bits": content.replace(first, first[:-1] + b"[1e300, ", 1),
        "a million users": b'{"user_data": {%s}}'
        % b",".join(b'"%d": {"x": [[1]], "y": [1]}' % number for number in range(10**6)),
        "a million labels": b'{"user_data": {"a": {"x": [%s], "y": [%s]}}}'
        % (b"[1]," * 10**6 + b"[2]", b",".join(b"%d" % number for number in range(10**6 + 1))),
    }.items():
        yield change.written("many items", name, new, READ_OR_REFUSED)


def image_folders(_: bytes) -> Iterator[Change]:
    """Iterate over what may lie in a folder of images by class."""
    png = _png(3, 4)
    for kind, name, content in (
        ("truncated", "half an image", png[: len(png) // 2]),
        ("empty", "no byte", b""),
        ("wrong type", "a text", b"text"),
        ("wrong type", "a GIF that is called PNG", b"GIF89a" + b"x" * 99),
        ("out of range", "4 billion pixels", _png(65_535, 65_535, b"")),
        ("unpack ratio", "100 million pixels in some KB", _png(10_000, 10_000)),
        ("null", "999 of them", b"\0" * 999),
    ):
        write = partial(_write_in, "images/a/0.png", content)
        yield Change(kind, name, write, REFUSED, unpacked=2**28)
    first = "images/a/0.png"
    for kind, name, edit in STORED_EDITS[4:]:
        yield Change(kind, name, partial(_edit_stored, first, edit), READ_OR_REFUSED)
    for kind, names in change.NAMES.items():
        for name in names:
            # No folder can have the other names.
            if "/" in name or "\0" in name or len(name) > 200 or not name.isprintable():
                continue
            new = partial(_write_in, f"images/{name}/0.png", png)
            yield Change(kind, f"a class {name[:20]!a}", new, READ_OR_REFUSED)
    for kind, name in (
        ("escapes", "\x1b]0;x\x07\u202e"),
        ("invalid UTF-8", "\udcff"),
        ("long name", "x" * 200),
    ):
        new = partial(_write_in, f"images/{name}/0.png", png)
        yield Change(kind, f"a class {name[:20]!a}", new, READ_OR_REFUSED)
    deep = "images/a/" + "x/" * 300 + "0.png"
    yield Change("nesting", "300 folders", partial(_write_in, deep, png), REFUSED)
    yield Change("many items", "5,000 classes", _many_classes, REFUSED)
    yield Change("missing", "no image of a class", partial(_edit_stored, "images/a", _clear))


def _write_in(name: str, content: bytes, cwd: Path) -> None:
    path = cwd / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _clear(path: Path) -> None:
    for one in path.iterdir():
        one.unlink()


def _many_classes(cwd: Path) -> None:
    for number in range(5_000):
        (cwd / "images" / f"class {number}").mkdir()


def _png(width: int, height: int, pixels: bytes | None = None) -> bytes:
    """Return a grey image of zeros in PNG; with `pixels`, whatever packed data it has."""
    rows = zlib.compress(bytes((width + 1) * height), 9) if pixels is None else pixels
    head = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def hocon(content: bytes) -> Iterator[Change]:
    """Iterate over changes of settings in HOCON."""
    yield from change.bytes_of_text(content, ends=READ_OR_REFUSED)
    for kind, name, new in (
        ("import", "an include", b'include "/etc/passwd"\n' + content),
        (
            "import",
            "an include of an address",
            b'include url("http://127.0.0.1/x")\n' + content,
        ),
        ("import", "a variable of the environment", content.replace(b"0.05", b"${HOME}")),
        ("import", "a reference to itself", b"a = ${a}\n" + content),
        ("nesting", "100,000 braces", b"a " + b"{" * 100_000),
        ("nesting", "100,000 brackets", b"a = " + b"[" * 100_000),
        ("many items", "a million lines", content + b"\n" * change.MANY),
        ("many items", "a million numbers", b"a = [" + b"1," * change.MANY + b"]\n"),
        ("many items", "a million names", b"".join(b"k%d=1\n" % n for n in range(10**6))),
        ("digits", "a number", content.replace(b"0.05", b"9" * 100_000)),
        ("long name", "a value", content.replace(b"0.05", b"x" * 3_000_000)),
        ("long name", "many names in braces", b"a = x\n" + b"b = " + b"{a}" * 10**6),
        ("truncated", "a quote without an end", content + b'x = "' + b"y" * 10**6),
        ("truncated", "three quotes without an end", content + b'x = """' + b"y" * 10**6),
    ):
        yield change.written(kind, name, new, READ_OR_REFUSED)
    for kind, texts in change.NAMES.items():
        for text in texts:
            raw = json.dumps(text).encode("utf-8", "surrogatepass")
            for old in (b'"x.Executor"', b'"train"'):
                new = content.replace(old, raw)
                yield change.written(kind, f"{old!a} as {text[:20]!a}", new, READ_OR_REFUSED)


def source(content: bytes) -> Iterator[Change]:
    """Iterate over changes of source code."""
    yield from change.bytes_of_text(content, ends=READ_OR_REFUSED)
    yield from change.python(content)


def output_folders(_: bytes) -> Iterator[Change]:
    """Iterate over what may stand where a command writes."""
    for name in (
        "report.html", "findings.json", "findings.csv", "plan.toml", "digests.json",
        ".audit.lock", ".lock", "runs", "cells", "runs/no_defense-seed0",
        "runs/no_defense-seed0/transcript", "runs/no_defense-seed0/transcript/manifest.json",
        "runs/no_defense-seed0/truth.json",
    ):  # fmt: skip
        for_audit = partial(_prepare_output, name)
        yield Change(
            "link", f"{name} to a file outside", partial(for_audit, "file"), READ_OR_REFUSED
        )
        yield Change(
            "link", f"{name} to a folder outside", partial(for_audit, "folder"), READ_OR_REFUSED
        )
        yield Change("pipe", name, partial(for_audit, "pipe"), READ_OR_REFUSED)
        yield Change("wrong kind of file", name, partial(for_audit, "full"), READ_OR_REFUSED)
    yield Change("link", "the folder itself, to outside", _link_output, READ_OR_REFUSED)
    yield Change(
        "partial file",
        "a part of a report",
        partial(_prepare_output, ".report.html.0123456789abcdef.part", "text"),
        SAME | {"harmless"},
    )
    yield Change(
        "partial file",
        "an empty folder of a run",
        partial(_prepare_output, "runs/no_defense-seed0/x", "text"),
        READ_OR_REFUSED,
    )
    yield Change(
        "wrong kind of file",
        "a file in place of the folder",
        lambda cwd: (cwd / "new").write_text("x") and None,
    )


def _prepare_output(name: str, what: str, cwd: Path) -> None:
    path, outside = cwd / "new" / name, cwd.parent / "outside"
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "file":
        path.symlink_to(outside / "victim")
    elif what == "folder":
        path.symlink_to(outside)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "full":
        path.mkdir()
        (path / "precious").write_text("precious")
    else:
        path.write_text("a part")


def _link_output(cwd: Path) -> None:
    (cwd / "new").symlink_to(cwd.parent / "outside")


def stored_results(_: bytes) -> Iterator[Change]:
    """Iterate over changes of what an audit has stored, before it goes on."""
    for what, pattern in {
        "a cell": "audit/cells/*.safetensors",
        "a run's update": "audit/runs/*/transcript/rounds/r0001/*update.safetensors",
        "a run's messages": "audit/runs/*/transcript/rounds/r0001/messages.jsonl",
        "a run's manifest": "audit/runs/*/transcript/manifest.json",
        "a run's truth": "audit/runs/*/truth.json",
        "a run's origin": "audit/runs/*/origin.json",
        "a run's digests": "audit/runs/*/sha256.json",
    }.items():
        for kind, name, edit in STORED_EDITS:
            # What is stored is read through a link, as its content is compared with its digest.
            is_link = kind == "link"
            ends = READ_OR_REFUSED if is_link else READ_OR_REFUSED - {"harmless"}
            yield Change(kind, f"{what}: {name}", partial(_edit_stored, pattern, edit), ends)
    yield Change(
        "stale data", "another plan under the same results", _other_plan, READ_OR_REFUSED
    )


def _edit_stored(pattern: str, edit: Callable[[Path], None], cwd: Path) -> None:
    edit(min(cwd.glob(pattern)))


def _other_plan(cwd: Path) -> None:
    plan = cwd / "plan.toml"
    plan.write_text(plan.read_text().replace("rate = 0.1", "rate = 0.2"))


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def _swap(path: Path) -> None:
    """Give a stored file the content of another one of its kind."""
    others = [one for one in sorted(path.parent.glob(f"*{path.suffix}")) if one != path]
    path.write_bytes((others[0] if others else path).read_bytes() + (b"" if others else b" "))


STORED_EDITS: tuple[tuple[str, str, Callable[[Path], None]], ...] = (
    ("stale data", "one bit flipped", _flip),
    ("stale data", "another file of its kind", _swap),
    ("truncated", "cut in half", lambda path: os.truncate(path, path.stat().st_size // 2)),
    ("empty", "no byte", lambda path: os.truncate(path, 0)),
    ("link", "to a copy outside", change.link_out),
    ("device", "/dev/zero", partial(change.link_to, "/dev/zero")),
    ("pipe", "without a writer", change.pipe),
    ("sparse", "2^40 bytes", partial(change.grow_sparsely, 2**40)),
    ("wrong kind of file", "a folder", change.folder_instead),
    ("missing", "no file", Path.unlink),
)

PACKAGE = "site/received-1.0.dist-info"


def entry_points(_: bytes) -> Iterator[Change]:
    """Iterate over packages that offer plugins."""
    for kind, name, text in (
        ("missing", "a module that is not there", "x = nowhere:X"),
        ("wrong type", "no class", "x = received_plugin:number"),
        ("contradiction", "it fails", "x = received_plugin:missing"),
        ("duplicate", "the name of a built-in attack", "decaf = received_plugin:X"),
        ("escapes", "in a name", f"{change.CONTROL} = nowhere:X"),
        ("html", "in a name", f"{change.HTML} = nowhere:X"),
        ("long name", "10,000 letters", f"{'x' * 10_000} = nowhere:X"),
        ("path parts", "in a reference", "x = ../../outside/victim:X"),
        ("many names", "2,000 plugins", "\n".join(f"x{n} = nowhere:X" for n in range(2_000))),
        ("truncated", "no end of a line", "x = "),
        ("invalid UTF-8", "in its list", "\udcff = a:B"),
    ):
        listed = f"[overheard.attacks]\n{text}\n".encode("utf-8", "surrogateescape")
        yield Change(kind, name, partial(_install, listed), READ_OR_REFUSED)
    yield Change("empty", "no byte", partial(_install, b""), READ_OR_REFUSED)
    yield Change("pipe", "in place of its list", _install_pipe, READ_OR_REFUSED)


def _install(entries: bytes, cwd: Path) -> None:
    folder = cwd / PACKAGE
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: received\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_bytes(entries)
    (cwd / "site" / "received_plugin.py").write_text("number = 1\n")


def _install_pipe(cwd: Path) -> None:
    _install(b"", cwd)
    change.pipe(cwd / PACKAGE / "entry_points.txt")


def data_folders(_: bytes) -> Iterator[Change]:
    """Iterate over what OVERHEARD_DATA may name, and what may lie in it."""
    yield Change("missing", "no folder", lambda cwd: None)
    yield Change(
        "wrong kind of file", "a file", lambda cwd: (cwd / "data").write_text("x") and None
    )
    yield Change("pipe", "a pipe", lambda cwd: os.mkfifo(cwd / "data"))
    yield Change("link", "to nowhere", lambda cwd: (cwd / "data").symlink_to("nowhere"))
    for name in ("mnist.npz", "train-images-idx3-ubyte.gz"):
        for kind, what, edit in DATA_EDITS:
            yield Change(kind, f"{name}: {what}", partial(_put_data, name, edit))


def _write_sparse(path: Path) -> None:
    path.write_bytes(b"")
    change.grow_sparsely(2**40, path)


LARGE_IMAGE = change.gzip.compress(b"\0\0\x08\x03" + b"\x7f\xff\xff\xff" * 3)

DATA_EDITS: tuple[tuple[str, str, Callable[[Path], object]], ...] = (
    ("empty", "no byte", lambda path: path.write_bytes(b"")),
    ("wrong type", "text", lambda path: path.write_bytes(b"text")),
    ("pipe", "a pipe", os.mkfifo),
    ("device", "/dev/zero", lambda path: path.symlink_to("/dev/zero")),
    ("wrong kind of file", "a folder", Path.mkdir),
    ("sparse", "2^40 bytes", _write_sparse),
    ("unpack ratio", "2 GB of zeros", partial(change.write_packed, b"\0", 2**31, b"")),
    ("lying header", "2^31 images", lambda path: path.write_bytes(LARGE_IMAGE)),
)


def _put_data(name: str, edit: Callable[[Path], object], cwd: Path) -> None:
    folder = cwd / "data" / "mnist"
    folder.mkdir(parents=True)
    for other in (
        "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz",
    ):  # fmt: skip
        (folder / other).write_bytes(change.gzip.compress(b"\0\0\x08\x03\0\0\0\0"))
    path = folder / name
    path.unlink(missing_ok=True)
    edit(path)


def environment(_: bytes) -> Iterator[Change]:
    """Iterate over values of the environment variables of Overheard."""
    for kind, name, value in (
        ("wrong type", "OVERHEARD_MAX_UNPACKED", "much"),
        ("out of range", "OVERHEARD_MAX_UNPACKED", "-1"),
        ("digits", "OVERHEARD_MAX_UNPACKED", "9" * 100_000),
        ("escapes", "OVERHEARD_MAX_UNPACKED", change.CONTROL),
        ("missing", "OVERHEARD_DATA", "nowhere"),
        ("path parts", "OVERHEARD_DATA", "../outside/victim"),
        ("escapes", "OVERHEARD_DATA", change.CONTROL),
        ("long name", "OVERHEARD_DATA", "x" * 100_000),
        ("wrong type", "OVERHEARD_NO_CODE", "perhaps"),
        ("wrong type", "OVERHEARD_TRUST_STORE", "perhaps"),
        ("wrong type", "OVERHEARD_DEBUG", "perhaps"),
    ):
        yield Change(
            kind,
            f"{name} = {value[:20]!a}",
            lambda _: None,
            READ_OR_REFUSED,
            MappingProxyType({name: value}),
        )


RECORDING = ("recording", "received.py")
ROUND = "recording/transcript/rounds/r0000"

ENTRIES: tuple[Entry, ...] = (
    Entry("recording: manifest.json", "recording/transcript/manifest.json", json_document,
          (SHOW,), RECORDING),
    Entry("recording: facts for a plan", "foreign/transcript/manifest.json", json_document,
          (INIT,), ("foreign", "received.py", "made"),
          writes=("made",), aliases=("no attack can run with what is known", "foreign")),
    Entry("recording: message lines", f"{ROUND}/messages.jsonl", message_lines,
          (SHOW,), RECORDING, has_folder=True, aliases=("round 0", "rounds/r0000")),
    Entry("recording: tensors", f"{ROUND}/0002-client-0-update.safetensors", recorded_tensors,
          (SHOW,), RECORDING, has_folder=True, aliases=("messages.jsonl",)),
    Entry("recording: truth.json", "simulated/truth.json", truth,
          (AUDIT_RECORDING,), ("simulated", "plan.toml"), writes=("new",), is_optional=True),
    Entry("recording: ended.json", "stopped/transcript/ended.json", json_document,
          (("show", "stopped"),), ("stopped", "received.py"), is_optional=True),
    Entry("recording: seconds.json", "audit/runs/no_defense-seed0/seconds.json", json_document,
          (RESUME,), ("audit", "plan.toml"), writes=("audit",), is_optional=True),
    Entry("recording: run_config.json", "foreign/run_config.json", json_document,
          (INIT,), ("foreign", "received.py", "made"),
          writes=("made",), is_optional=True),
    Entry("recording: node_names.json", "named/node_names.json", json_document,
          (INIT_LISTED,), ("named", "digits.npz", "listed.npz", "made"), writes=("made",),
          is_optional=True, aliases=("named", "listed.npz")),
    Entry("export: about.toml", "exported/about.toml", toml_document,
          (IMPORT,), ("exported", "received.py"), writes=("new",), is_optional=True),
    Entry("export: weights in safetensors", "exported/round-0000/b.safetensors",
          change.safetensors, (IMPORT,), ("exported",), writes=("new",), has_folder=True,
          is_optional=True, aliases=("about.toml", "round-0000")),
    Entry("export: weights in npz", "exported/round-0000/0.npz", change.npz,
          (IMPORT,), ("exported",), writes=("new",), has_folder=True, is_optional=True,
          aliases=("about.toml", "round-0000")),
    Entry("export: models of PyTorch", "published-torch/model_1.pt", models.torch_file,
          (("import", "published-torch", "--out", "new"),), ("published-torch",),
          writes=("new",), is_optional=True, aliases=("published-torch",)),
    Entry("export: models of Keras", "published-keras/model_1.h5", models.keras_file,
          (("import", "published-keras", "--out", "new"),), ("published-keras",),
          writes=("new",), is_optional=True, aliases=("published-keras",)),
    Entry("export: models of ONNX", "published-onnx/model_1.onnx", models.onnx_file,
          (("import", "published-onnx", "--out", "new"),), ("published-onnx",),
          writes=("new",), is_optional=True, aliases=("published-onnx",)),
    Entry("export: breakpoints of Fed-BioMed",
          "experiment/breakpoint_0003/breakpoint_0003.json", json_document,
          (IMPORT_EXPERIMENT,), ("experiment",), writes=("new",), has_folder=True,
          aliases=("breakpoint_0003", "experiment/")),
    Entry("export: weights of Fed-BioMed", "experiment/initial_params.mpk", change.messagepack,
          (IMPORT_EXPERIMENT,), ("experiment",), writes=("new",), is_optional=True,
          aliases=("experiment",)),
    Entry("plan", "plan.toml", toml_document, (plan_check("plan.toml"),),
          ("plan.toml",), is_named=True, fine=frozenset({0, 2})),
    Entry("app: pyproject.toml", "app/pyproject.toml", toml_document,
          (("init", "made/new.toml", "--simulate", "--flower", "app"),), ("app", "made"),
          writes=("made",), may_import=("app",), aliases=("app/", "clinic_app")),
    Entry("app: source code", "app/clinic_app/task.py", source,
          (("init", "made/new.toml", "--simulate", "--flower", "app"),), ("app", "made"),
          writes=("made",), may_import=("app",), is_optional=True, aliases=("clinic_app",)),
    Entry("job of NVFlare: settings in json", "job/app/config/config_fed_server.json",
          json_document, (REVIEW_JOB, INIT_JOB), ("job", "made"), writes=("made",),
          may_import=("job",), is_optional=True, aliases=("job",)),
    Entry("job of NVFlare: settings in conf", "job/app/config/config_fed_client.conf", hocon,
          (REVIEW_JOB, INIT_JOB), ("job", "made"), writes=("made",),
          may_import=("job",), is_optional=True, aliases=("job",)),
    Entry("job of NVFlare: meta.json", "job/meta.json", json_document,
          (REVIEW_JOB, INIT_JOB), ("job", "made"), writes=("made",),
          may_import=("job",), is_optional=True, aliases=("job",)),
    Entry("app: reviewed source code", "app/clinic_app/task.py", source,
          (("review", "app", "--out", "made/page.html"),), ("app", "made"),
          writes=("made",), fine=frozenset({0, 1}), is_optional=True, is_told=True,
          aliases=("clinic_app", "app:")),
    Entry("data: arrays in npz", "spare.npz", change.npz, (plan_check("npz.toml"),),
          ("npz.toml",), is_named=True, fine=frozenset({0, 2})),
    Entry("data: tables in csv", "table.csv", table, (plan_check("csv.toml"),),
          ("csv.toml",), is_named=True, fine=frozenset({0, 2})),
    Entry("data: tables in .data", "table.data", blanks, (plan_check("data.toml"),),
          ("data.toml",), is_named=True, fine=frozenset({0, 2})),
    Entry("data: texts in jsonl", "texts.jsonl", text_lines, (plan_check("lines.toml"),),
          ("lines.toml",), is_named=True, fine=frozenset({0, 2}), is_told=True),
    Entry("data: texts in csv", "table.csv", table, (plan_check("texts.toml"),),
          ("texts.toml",), is_named=True, fine=frozenset({0, 2})),
    Entry("data: tables in csv.gz", "table.csv.gz", change.packed_csv,
          (plan_check("gz.toml"),), ("gz.toml",), is_named=True, fine=frozenset({0, 2})),
    Entry("data: sheets in xlsx", "table.xlsx", change.sheets,
          (plan_check("xlsx.toml"),), ("xlsx.toml",), is_named=True,
          fine=frozenset({0, 2})),
    Entry("data: tables in arff", "table.arff", change.arff,
          (plan_check("arff.toml"),), ("arff.toml",), is_named=True,
          fine=frozenset({0, 2})),
    Entry("data: tables in parquet", "table.parquet", change.parquet,
          (plan_check("parquet.toml"),), ("parquet.toml",), is_named=True,
          fine=frozenset({0, 2})),
    Entry("data: LEAF's json", "leaf.json", leaf, (plan_check("leaf.toml"),),
          ("leaf.toml",), is_named=True, fine=frozenset({0, 2})),
    Entry("data: folder of images", ".", image_folders, (plan_check("images.toml"),),
          ("images.toml", "images"), fine=frozenset({0, 2}), aliases=("images",)),
    Entry("data: folder of datasets: state.json", "saved/state.json", saved_datasets.state,
          (plan_check("saved.toml"),), ("saved.toml",), fine=frozenset({0, 2}),
          aliases=("saved",)),
    Entry("data: folder of datasets: dataset_info.json", "saved/dataset_info.json",
          json_document, (plan_check("saved.toml"),), ("saved.toml",),
          fine=frozenset({0, 2}), aliases=("saved",)),
    Entry("data: folder of datasets: rows in arrow", f"saved/{saved_datasets.DATA}",
          saved_datasets.arrow_file, (plan_check("saved.toml"),), ("saved.toml",),
          fine=frozenset({0, 2}), aliases=("saved",)),
    Entry("data: folder of public data sets", ".", data_folders,
          (plan_check("mnist.toml"),), ("mnist.toml", "cifar.toml"), fine=frozenset({0, 2}),
          environment=MappingProxyType({"OVERHEARD_DATA": "data"}), aliases=("data",)),
    Entry("findings.json", "audit/findings.json", findings,
          (CHECK, ("compare", "audit", "audit"), ("evidence", "audit", "--out", "new")),
          ("audit", "policy.toml"), writes=("new",), fine=frozenset({0, 1, 2}), is_named=True),
    Entry("policy", "policy.toml", toml_document, (CHECK,), ("audit", "policy.toml"),
          fine=frozenset({0, 1, 2}), is_named=True),
    Entry("evidence: officer.toml", "audit/evidence/officer.toml", toml_document,
          (EVIDENCE,), ("audit",), writes=("audit",), is_optional=True,
          aliases=("audit/evidence",)),
    Entry("evidence: digests.json", "audit/digests.json", json_document,
          (VERIFY,), ("audit",), fine=frozenset({0, 1})),
    Entry("output folder", ".", output_folders, (AUDIT,), ("plan.toml",), writes=("new",),
          aliases=("new",)),
    Entry("output folder: stored results", ".", stored_results, (RESUME,),
          ("audit", "plan.toml"), writes=("audit",), aliases=("audit",),
          results=("audit/findings.json", "audit/report.html", "audit/findings.csv")),
    Entry("environment variables", ".", environment,
          (plan_check("csv.toml"), plan_check("mnist.toml")),
          ("csv.toml", "table.csv", "mnist.toml"), fine=frozenset({0, 2}),
          aliases=("OVERHEARD_", "data", "xxx"),
          environment=MappingProxyType({"OVERHEARD_DATA": "data"})),
    Entry("installed packages: entry points", ".", entry_points, (("list", "attacks"),), (),
          may_import=("site",), environment=MappingProxyType({"PYTHONPATH": "site"})),
)  # fmt: skip
