"""Thousands of damaged and malicious recordings, derived from an intact one."""

import io
import json
import os
import random
import shutil
import signal
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

import torch
from rich.console import Console
from safetensors.torch import save

from overheard.archive.manifest import DefenseRecord, Manifest
from overheard.archive.reader import verify_transcript
from overheard.archive.recorder import Recorder
from overheard.archive.run_time import RunTime, read_run_time, write_run_time
from overheard.archive.truth import write_truth
from overheard.cli.showing import print_overview
from overheard.core.errors import AuditError
from overheard.core.facts import Facts
from overheard.core.mechanism import Mechanism
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    Message,
    MissingReply,
    Timestamps,
    Update,
)
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.report.run_overview import RunOverview
from overheard.report.show import show
from tests.archive.stored_truth import read_truth

Files = dict[str, bytes]
"""A run's folder: the content of each file by path."""

MANIFEST = "transcript/manifest.json"
LINES = "transcript/rounds/r0000/messages.jsonl"
CLOSING = "transcript/rounds/r0001/messages.jsonl"
TRUTH = "truth.json"
SECONDS = "seconds.json"
UPDATE = "transcript/rounds/r0000/0002-client-0-update.safetensors"

CONTROL = "\x1b]0;owned\x07\x1b[2J\u202e\x00"
MARKUP = "[red]x[/red][/]<script>alert(1)</script>"

REMEDIES = (
    "copy", "record", "get ", "ask ", "rename", "move", "delete", "upgrade", "put ", "name ",
    "check", "leave", "write", "send", "mend", "export", "keep", "take", "convert", "choose",
    "give", "save", "add ", "fix", "remove", "replace", "set ", "use ", "repair", "again",
)  # fmt: skip
"""Every error message has one of these words, which say what to do."""


def recorded(folder: Path) -> None:
    """Record a run with every kind of message, a ground truth and a run time."""
    everyone, server = frozenset({client(0), client(1)}), frozenset({SERVER})
    manifest = Manifest(
        Task((2,), ("no", "yes")),
        "linear",
        Recipe(0.1, 1, 4),
        (
            DefenseRecord(
                "noise", "Noise(1.0)", "client", "the client",
                Mechanism(1.0, 2.0, 1e-5, "client", "client"),
            ),
        ),
        (SERVER, client(0), client(1)),
        rounds=1,
        framework="flwr 1.41.0",
        left_out=("steps",),
    )  # fmt: skip
    start = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
    labels = torch.tensor([[1.0, 0.0]] * 3)
    distilled = DistilledSet(torch.ones(3, 2), labels, torch.ones(3), torch.ones(3))
    messages = (
        Message(0, SERVER, everyone, Broadcast(start, {"lr": "0.1"}), Timestamps(1.0, None)),
        Message(0, client(1), server, MissingReply("late")),
        Message(0, client(0), server, Update(start, 5, {"loss": 0.75}), Timestamps(2.0, 2.5)),
        Message(0, SERVER, frozenset(), Aggregate(start, everyone, 5)),
        Message(0, client(1), server, distilled),
        Message(0, client(1), server, Evaluation({"accuracy": 0.5}, 7)),
        Message(1, SERVER, everyone, Broadcast(start)),
    )
    recorder = Recorder(folder, manifest)
    for number in (0, 1):
        with recorder.open_round() as open_round:
            for message in messages:
                if message.round == number:
                    open_round.record(message)
    counts = {(0, client(0)): torch.tensor([3, 2]), (0, client(1)): torch.tensor([0, 4])}
    write_truth(
        folder,
        GroundTruth(
            Facts(
                LabelCounts(counts),
                Shifts({client(0): (1,)}),
                UsersOfClients({client(0): "ann", client(1): "bob"}),
                Attributes({"sex": {"ann": "f", "bob": "m"}}),
                RecordOwners({client(0): (1, 2)}),
            ),
            {0: 0.5, 1: 0.75},
        ),
    )
    write_run_time(folder, RunTime(1.5, None))


def contents(folder: Path) -> Files:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def overview_of(folder: Path) -> str:
    """Return what `overheard show` prints and what Python shows."""
    overview = show(folder)
    return f"{printed(overview)}{overview}{overview._repr_html_()}"


@cache
def printed(overview: RunOverview) -> str:
    """Return what the command prints; it takes long, and most readable cases have the same."""
    page = io.StringIO()
    print_overview(overview, Console(file=page, width=100))
    return page.getvalue()


READERS: tuple[Callable[[Path], object], ...] = (
    verify_transcript, read_truth, read_run_time, overview_of,
)  # fmt: skip
"""All readers of a run; the overview opens the transcript as attacks do."""


@dataclass
class CaseResults:
    """The number of cases, the number of refused ones, and the problems."""

    count: int = 0
    refused: int = 0
    problems: list[str] = field(default_factory=list)

    def run_case(
        self, case: str, folder: Path, readers: Iterable[Callable[[Path], object]]
    ) -> bool:
        """Run all readers on a folder; return whether any refused it."""
        errors = [self.read_case(case, folder, read) for read in readers]
        self.count += 1
        self.refused += any(errors)
        return any(errors)

    def expect(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(problem[:2000])

    def read_case(self, case: str, folder: Path, read: Callable[[Path], object]) -> str:
        try:
            with time_limit(20):
                output = read(folder)
        except AuditError as error:
            text = str(error)
            self.expect(str(folder) in text, f"{case}: error without file: {text!a}")
            self.expect(text.isprintable(), f"{case}: unprintable error: {text!a}")
            self.expect(
                any(remedy in text for remedy in REMEDIES),
                f"{case}: error without remedy: {text!a}",
            )
            self.expect(len(text) < 20_000, f"{case}: {len(text)} characters")
            self.expect(
                "root:x:" not in text, f"{case}: error with another file's content: {text!a}"
            )
            return text
        # Any other exception is a problem.
        except BaseException as error:
            self.problems.append(f"{case}: {read}: {type(error).__name__}: {error!a}")
            return "broken"
        if isinstance(output, str):
            shows = output.replace("\n", "").isprintable()
            self.expect(shows, f"{case}: unprintable output: {output!a}")
        return ""


class StuckError(Exception):
    """A reader is blocked, as by a pipe without a writer."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise StuckError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def with_weights(files: Files, name: str, content: bytes) -> Files:
    """Return the files with other weights, whose size and digest are recorded correctly."""
    place, file = name.rsplit("/", 1)
    lines = []
    for raw in files[f"{place}/messages.jsonl"].splitlines():
        line = json.loads(raw)
        for stored in line["body"].values():
            if isinstance(stored, dict) and stored.get("name") == file:
                stored |= {"size": len(content), "sha256": sha256(content).hexdigest()}
        lines.append(json.dumps(line).encode())
    return files | {name: content, f"{place}/messages.jsonl": b"\n".join(lines)}


# Replacements for a number, a text or a list.
VALUES = (
    '-1', '-1e308', '1e400', 'NaN', 'Infinity', '9' * 400, '9' * 5000, '18446744073709551616',
    '1.5', 'true', 'null', '""', '[]', '{}', '[' * 300 + ']' * 300, '"../../x"',
    '"/etc/passwd"',
    '"\\ud800"', '"\\u0000"', json.dumps(CONTROL), json.dumps(MARKUP), json.dumps("x" * 5000),
    '{"kind": "\\u001b[2J"}', '"server"', '"client/0"',
)  # fmt: skip

MARK = "@hostile@"


def value_paths(
    intact: object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Iterate over the paths of all values, including lists and tables."""
    if path:
        yield path
    if isinstance(intact, dict | list):
        for key, value in intact.items() if isinstance(intact, dict) else enumerate(intact):
            yield from value_paths(value, (*path, key))


def replace_value(intact: object, path: tuple[str | int, ...], value: str) -> bytes:
    """Return the JSON with the value at this path replaced."""
    copy = json.loads(json.dumps(intact))
    part = copy
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = MARK
    return json.dumps(copy).replace(json.dumps(MARK), value).encode()


def rename_key(intact: object, path: tuple[str | int, ...], name: str) -> bytes:
    """Return the JSON with the key at this path renamed."""
    copy = json.loads(json.dumps(intact))
    part = copy
    for key in path[:-1]:
        part = part[key]
    part[name] = part.pop(path[-1])
    return json.dumps(copy).encode()


def documents(files: Files) -> Iterator[tuple[object, Callable[[bytes], Files]]]:
    """Iterate over all JSON documents of a run, each with a function that replaces it."""
    for name in (MANIFEST, TRUTH, SECONDS):
        yield json.loads(files[name]), lambda new, name=name: files | {name: new}
    lines = files[LINES].splitlines()
    for number, raw in enumerate(lines):
        yield (
            json.loads(raw),
            lambda new, number=number: (
                files | {LINES: b"\n".join([*lines[:number], new, *lines[number + 1 :]])}
            ),
        )


def other_values(files: Files, rng: random.Random) -> Iterator[Files]:
    for document, with_ in documents(files):
        for path in value_paths(document):
            for value in rng.sample(VALUES, 4):
                yield with_(replace_value(document, path, value))


def other_keys(files: Files, rng: random.Random) -> Iterator[Files]:
    for document, with_ in documents(files):
        for path in value_paths(document):
            if isinstance(path[-1], str):
                name = rng.choice((CONTROL, MARKUP, "", "x" * 3000, "\ud800", "../x"))
                yield with_(rename_key(document, path, name))
        once = json.dumps(document).encode()
        # Every key occurs twice; the second or the first takes effect.
        yield with_(once[:-1] + b"," + once[1:])
        yield with_(once[:1] + b'"round":9,"format":1,"wall":-1,' + once[1:])


def cut(files: Files, rng: random.Random) -> Iterator[Files]:
    for name, content in files.items():
        for place in {0, 1, len(content) - 1, *rng.sample(range(len(content)), 24)}:
            yield files | {name: content[:place]}


def flipped(files: Files, rng: random.Random) -> Iterator[Files]:
    for name, content in files.items():
        for _ in range(16):
            damaged = bytearray(content)
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            new = bytes(damaged)
            yield files | {name: new}
            if name.endswith(".safetensors"):
                yield with_weights(files, name, new)


def noise(files: Files, rng: random.Random) -> Iterator[Files]:
    for name, content in files.items():
        for _ in range(6):
            yield files | {name: rng.randbytes(rng.choice((0, 1, 9, len(content))))}
        for junk in (
            b"\n" * 999,
            b"\0" * 999,
            b"[" * 99_999,
            b'{"a":' * 9_999,
            b"null",
            b"\xff",
        ):
            yield files | {name: junk}
        yield {other: held for other, held in files.items() if other != name}


def header(dtype: str, shape: list[int], length: int, name: str = "weight") -> bytes:
    head = {name: {"dtype": dtype, "shape": shape, "data_offsets": [0, length]}}
    raw = json.dumps(head).encode()
    return struct.pack("<Q", len(raw)) + raw + b"\0" * min(length, 999)


def other_weights(files: Files, rng: random.Random) -> Iterator[Files]:
    right = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
    damaged = [
        {name: tensor.to(kind) for name, tensor in right.items()}
        for kind in (
            torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool,
            torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64, torch.uint16,
        )
    ]  # fmt: skip
    damaged += [
        right | {"bias": torch.tensor([value])}
        for value in (float("nan"), float("inf"), -float("inf"), 3e38)
    ]
    damaged += [
        right | {"bias": torch.zeros(shape)} for shape in ((), (0,), (2,), (1, 1), (0, 10**9))
    ]
    damaged += [{}, {"weight": right["weight"]}, right | {CONTROL: torch.ones(1)}]
    damaged += [right | {MARKUP: torch.ones(1)}, right | {"x" * 9000: torch.ones(1)}]
    contents = [save(tensors) for tensors in damaged]
    contents += [
        header(dtype, shape, length)
        for dtype in ("F32", "F4", "F8_E4M3", "XX", "")
        for shape in ([2], [2**60], [-1], [2**31, 2**31], [])
        for length in (8, 2**60)
    ]
    contents += [
        struct.pack("<Q", size) + b"{}" * 20 for size in (0, 1, 2**31, 2**60, 2**63, 2**64 - 1)
    ]
    for content in contents:
        for name in (name for name in files if name.endswith(".safetensors")):
            yield with_weights(files, name, content)


def other_rounds(files: Files, rng: random.Random) -> Iterator[Files]:
    lines, place = files[LINES].splitlines(), "transcript/rounds"
    for number in range(len(lines)):
        yield files | {LINES: b"\n".join(lines[:number] + lines[number + 1 :])}
        yield files | {LINES: b"\n".join([*lines, lines[number]])}
    for _ in range(20):
        yield files | {LINES: b"\n".join(rng.sample(lines, len(lines)))}
    for name in ("r0002", "r0007", "r00000", "r-001", "R0000", "x", "r9999999999", " "):
        yield files | {f"{place}/{name}/messages.jsonl": files[CLOSING]}
        yield {path.replace("r0001", name): held for path, held in files.items()}
    # As many lines as in a round with thousands of clients, the last of them damaged.
    missing = lines[1] + b"\n"
    yield files | {LINES: lines[0] + b"\n" + missing * 5_000}
    yield files | {LINES: lines[0] + b"\n" + missing * 5_000 + b"{"}
    yield files | {LINES: b"\n" * 1_000_000}


CHANGES = (
    other_values, other_keys, cut, flipped, noise, other_weights, other_rounds,
)  # fmt: skip


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def recordings(home: Path, intact: Files) -> CaseResults:
    """Run all changes of the content of a run's files."""
    results, rng = CaseResults(), random.Random(20)
    folder, previous = write_files(home / "run", intact), dict(intact)
    for change in CHANGES:
        for number, files in enumerate(change(intact, rng)):
            case = f"{change.__name__} {number}"
            for name in previous.keys() - files.keys():
                (folder / name).unlink()
            write_files(
                folder, {name: new for name, new in files.items() if previous.get(name) != new}
            )
            previous = files
            results.run_case(case, folder, READERS)
            # Reading must not write.
            left = files_in(home)
            results.expect(
                left == {f"run/{name}" for name in files}, f"{case}: {left} are there"
            )
    return results


def link_out(path: Path, outside: Path) -> None:
    path.rename(outside / "elsewhere")
    path.symlink_to(outside / "elsewhere")


def link_to(target: str) -> Callable[[Path, Path], None]:
    def link(path: Path, _: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return link


def pipe(path: Path, _: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder_instead(path: Path, _: Path) -> None:
    path.unlink()
    path.mkdir()


def endless(path: Path, _: Path) -> None:
    """Make the file sparse: it takes no disk space but would fill the memory."""
    os.truncate(path, 2**40)


TRICKS = (
    link_out, link_to("/dev/zero"), link_to("/etc/passwd"), link_to("nowhere"), pipe,
    folder_instead, endless,
)  # fmt: skip


def tricks(home: Path, intact: Files) -> CaseResults:
    """Run all replacements of a file by something other than a regular file."""
    results = CaseResults()
    for name in intact:
        for number, trick in enumerate(TRICKS):
            outside = home / f"{results.count}-outside"
            outside.mkdir()
            folder = write_files(home / f"{results.count}-run", intact)
            trick(folder / name, outside)
            case = f"{name}: trick {number}"
            is_refused = results.run_case(case, folder, READERS)
            # A dangling link to a run time or to the last round counts as missing.
            is_allowed = number == 3 and name in (SECONDS, CLOSING)
            results.expect(is_refused or is_allowed, f"{case}: is read")
    for name in ("transcript/rounds", "transcript/rounds/r0000"):
        folder = write_files(home / f"{results.count}-run", intact)
        link_out(folder / name, home)
        results.expect(results.run_case(name, folder, READERS), f"{name}: is read")
        shutil.rmtree(home / "elsewhere")
    return results
