"""Runs the cells of the corpus, entry by class, and judges how each ended."""

import csv
import io
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, groupby
from pathlib import Path

from overheard.disk.limits import ANY_RATIO, MAX_RATIO, TABLE, json_memory, limit_of
from tests.hostile.audit_hook import WatchedCommands, WatchedRun
from tests.hostile.changes import Change
from tests.hostile.entries import Entry

LIMIT_S = 10
"""Seconds that each command may compute."""

MOST_S = 180
"""Seconds after which a command is ended, as other work may slow this machine."""

SPARE_BYTES = 256 * 2**20
"""Memory that a command may use beyond that for the intact input and 4 times the new one."""

MOST_UNPACKED = 2**28
"""Most bytes of an input that count in its limit of memory."""

HARD_LIMIT = 6 * 2**30
"""Bytes at which a command is ended, so that a flaw cannot end this machine."""

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

ACTIVE_MARKUP = re.compile("<script>alert|<img src=x")

NOT_COMPARED = ("seconds.json",)
"""Names of files whose content differs between equal runs."""


@dataclass(frozen=True)
class Cell:
    """A change of an entry, which a command then reads."""

    entry: Entry
    change: Change
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in reports."""
        return f"{self.entry.row} | {self.change.kind} | {self.change.name} | {self.command[0]}"


@dataclass(frozen=True)
class CellResult:
    """How a cell ended.

    Args:
        cell: the cell.
        end: "clean error", "same result", "harmless", "unrecorded", or "failed".
        problems: what is wrong; empty if all is as it should be.
        seconds: how long the command computed.
        peak_bytes: the most memory that it used.
        more_bytes: how much more that is than for the intact input.
        said: the start of what it printed.

    """

    cell: Cell
    end: str
    problems: tuple[str, ...]
    seconds: float
    peak_bytes: int
    more_bytes: int
    said: str


def cells_of(entry: Entry, workspace: Path, most: int) -> Iterator[Cell]:
    """Iterate over the cells of an entry, at most so many of each class, evenly spaced."""
    changes = sorted(entry.all_changes(workspace), key=lambda one: one.kind)
    for _, group in groupby(changes, key=lambda one: one.kind):
        found = list(group)
        step = max(1, len(found) / most)
        chosen = {int(number * step) for number in range(min(most, len(found)))}
        for number in sorted(chosen):
            for command in entry.commands if most > 1 else entry.commands[:1]:
                yield Cell(entry, found[number], command)


class Corpus:
    """Runs cells, each in a fresh copy of its inputs.

    Args:
        workspace: folder with an intact input of every kind.
        home: an empty folder.
        commands: what runs commands.

    """

    def __init__(self, workspace: Path, home: Path, commands: WatchedCommands) -> None:
        self._workspace, self._home, self._commands = workspace, home, commands
        self._intact: dict[tuple[str, ...], tuple[WatchedRun, dict[str, str]]] = {}
        self._count = 0

    def run(self, cell: Cell) -> CellResult:
        """Run a cell."""
        before, expected = self._run_intact(cell)
        cwd = self._prepare(cell.entry)
        outside = _contents([cwd.parent / "outside"])
        path = cwd / cell.entry.file
        cell.change.apply(path)
        # A link may have moved the input there.
        moved = _contents([cwd.parent / "outside"])
        stated = cell.change.unpacked
        size = _unpacked(path) if stated is None else stated
        run = self._watch(cell, cwd, cell.change.environment)
        problems = list(self._problems(cell, run, before, size))
        written = _contents([cwd / one for one in cell.entry.results or cell.entry.writes])
        if _contents([cwd.parent / "outside"]) != moved or not outside.items() <= moved.items():
            problems.append("files outside were changed")
        problems += _active_content([cwd / one for one in cell.entry.writes])
        end, more = self._end(cell, run, before, written == expected)
        problems += more
        if not problems and end not in cell.change.ends:
            problems.append(f"ended as {end}, not as {' or '.join(sorted(cell.change.ends))}")
        shutil.rmtree(cwd.parent)
        said = " ".join(f"{run.stderr} {run.stdout}".split())[:300]
        return CellResult(
            cell,
            "failed" if problems else end,
            tuple(problems),
            run.cpu_seconds,
            run.peak_bytes,
            run.peak_bytes - before.peak_bytes,
            said,
        )

    def _run_intact(self, cell: Cell) -> tuple[WatchedRun, dict[str, str]]:
        key = (cell.entry.row, *cell.command)
        if key not in self._intact:
            cwd = self._prepare(cell.entry)
            run = self._watch(cell, cwd, {})
            # Without a file, as of a data set, the command may refuse, too.
            is_refused = run.exit_code == 2 and not run.stdout and cell.entry.file != "."
            if run.exit_code not in cell.entry.fine or run.events or is_refused:
                raise RuntimeError(f"the intact input of {key} fails: {run}")
            results = cell.entry.results or cell.entry.writes
            written = _contents([cwd / one for one in results])
            self._intact[key] = run, written
            shutil.rmtree(cwd.parent)
        return self._intact[key]

    def _prepare(self, entry: Entry) -> Path:
        """Copy the inputs of an entry to a new working directory."""
        self._count += 1
        cwd = self._home / str(self._count) / "cwd"
        cwd.mkdir(parents=True)
        (cwd.parent / "outside").mkdir()
        (cwd.parent / "outside" / "victim").write_text("precious")
        names = {*entry.parts, *([] if entry.file == "." else [entry.file.split("/")[0]])}
        for name in names:
            source = self._workspace / name
            if source.is_dir():
                shutil.copytree(source, cwd / name)
            else:
                shutil.copy(source, cwd / name)
        return cwd

    def _watch(self, cell: Cell, cwd: Path, environment: Mapping[str, str]) -> WatchedRun:
        return self._commands.run(
            cell.command,
            cwd=cwd,
            may_write=[cwd / one for one in cell.entry.writes],
            may_import=[cwd / one for one in cell.entry.may_import],
            limit_s=MOST_S,
            memory_bytes=HARD_LIMIT,
            environment={**cell.entry.environment, **environment},
        )

    def _problems(
        self, cell: Cell, run: WatchedRun, before: WatchedRun, size: int
    ) -> Iterator[str]:
        yield from run.events
        if run.cpu_seconds > LIMIT_S:
            yield f"time: it computed {run.cpu_seconds:.1f} s, more than {LIMIT_S} s"
        most = before.peak_bytes + SPARE_BYTES + 4 * max(limit_of(ANY_RATIO), size)
        if run.peak_bytes > most:
            yield f"memory: {run.peak_bytes >> 20} MB, more than {most >> 20} MB"
        for text in (run.stdout, run.stderr):
            if found := UNPRINTABLE.search(text):
                yield f"unprintable in the output: {found[0]!a}"
            if "Traceback" in text:
                yield "a traceback"

    def _end(
        self, cell: Cell, run: WatchedRun, before: WatchedRun, is_same_output: bool
    ) -> tuple[str, list[str]]:
        """Return how a command ended, and what is wrong with it."""
        flat = "".join(run.stderr.split())
        if run.exit_code == 2 and not run.stdout:
            errors = len(re.findall("^overheard: ", run.stderr, re.MULTILINE))
            names = {Path(cell.entry.file).name, *cell.entry.aliases} - {""}
            problems = []
            if errors != 1:
                problems.append(f"{errors} messages")
            if not any("".join(name.split()) in flat for name in names):
                problems.append("the message names no file")
            return "clean error", problems
        same = (before.exit_code, before.stdout, before.stderr)
        if (run.exit_code, run.stdout, run.stderr) == same and is_same_output:
            return "same result", []
        if run.exit_code in cell.entry.fine:
            return "harmless", []
        return "failed", [f"exit code {run.exit_code}"]


def _unpacked(path: Path) -> int:
    """Return the bytes of memory that an input takes by the limits' own estimate."""
    if not path.is_file() or path.stat().st_size > MOST_UNPACKED:
        return 0 if not path.is_file() else MOST_UNPACKED
    size = path.stat().st_size
    if path.suffix in (".json", ".jsonl", ".toml"):
        # The document, and the values that are made of it.
        return 2 * json_memory(path.read_bytes())
    if path.suffix in (".gz", ".npz", ".parquet"):
        return min(MAX_RATIO * size, limit_of(TABLE))
    return size


def _contents(paths: Iterable[Path]) -> dict[str, str]:
    """Return a digest of each file in these files and folders."""
    found = {}
    for root in paths:
        for path in [root, *sorted(root.rglob("*"))]:
            name = str(path.relative_to(root.parent))
            if path.is_symlink():
                found[name] = f"to {path.readlink()}"
            elif path.is_file() and path.name not in NOT_COMPARED:
                # A sparse file is not read.
                large = path.stat().st_size > 2**28
                found[name] = "large" if large else sha256(path.read_bytes()).hexdigest()
    return found


def _active_content(paths: Iterable[Path]) -> Iterator[str]:
    """Iterate over what would act in a browser, a terminal or a spreadsheet."""
    for path in chain.from_iterable((root, *root.rglob("*")) for root in paths):
        if path.is_symlink() or not path.is_file():
            continue
        if path.suffix in (".html", ".md", ".csv", ".svg"):
            text = path.read_text(encoding="utf-8")
            if path.suffix != ".csv" and ACTIVE_MARKUP.search(text):
                yield f"{path.name} has markup of the input"
            if found := UNPRINTABLE.search(text):
                yield f"{path.name} has {found[0]!a}"
            if path.suffix == ".csv":
                cells = chain.from_iterable(csv.reader(io.StringIO(text)))
                if any(one.startswith(("=cmd", "@SUM")) for one in cells):
                    yield f"{path.name} has a formula of the input"
