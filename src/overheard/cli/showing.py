"""Tells what a transcript holds and what each observer of it sees."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from overheard.archive.layout import committed_rounds
from overheard.archive.manifest import DefenseRecord, Manifest, is_complete, read_manifest
from overheard.archive.reader import open_transcript
from overheard.cli.in_clear import counted, in_clear
from overheard.cli.terminal import plain
from overheard.core.messages import (
    Aggregate,
    Body,
    Broadcast,
    DistilledSet,
    Evaluation,
    Message,
    Missing,
    Update,
)
from overheard.core.parties import COHORT, SERVER, Party
from overheard.findings.names import shortened

COLUMNS: dict[str, type[Body]] = {
    "broad-\ncasts": Broadcast,
    "updates": Update,
    "aggre-\ngates": Aggregate,
    "distilled\nsets": DistilledSet,
    "evalu-\nations": Evaluation,
    "no\nanswers": Missing,
}

SIZES = "sizes\nin clear"

MOST_ROWS = 20
"""Observers that get a row each; of more, those who see as much share one."""

LONGEST = 300
"""Characters of a text from outside that are shown."""


def show(folder: Path, console: Console) -> None:
    """Print what was run, what every party can read, and what travels in clear."""
    manifest = read_manifest(folder)
    messages = open_transcript(folder).messages
    console.print(_pairs(_facts(manifest, folder)))
    console.print()
    console.print(_table(messages))
    for line in _who_reads_whom(messages):
        console.print(plain(line))
    console.print()
    told = in_clear(messages)
    if not told:
        console.print("Nothing but weights travels.")
    console.print(_pairs((one.what, one.says) for one in told))


def _pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names on the left, what they say on the right, folded where it is long."""
    table = Table.grid(
        Column(width=11, justify="right"), Column(overflow="fold"), padding=(0, 1)
    )
    for name, value in pairs:
        table.add_row(Text(name, style="dim"), plain(value))
    return table


def _facts(manifest: Manifest, folder: Path) -> Iterator[tuple[str, str]]:
    yield "model", shortened(manifest.model, LONGEST) or "not told"
    task = manifest.task
    yield (
        "classes",
        "not told" if task is None else f"{task.classes} ({counted(task.class_names, 10)})",
    )
    yield "recipe", "not told" if manifest.recipe is None else repr(manifest.recipe)
    yield from _defenses(manifest)
    there = committed_rounds(folder)
    if manifest.rounds is None:
        yield "rounds", f"{there:,} recorded, how many were planned is not told"
    else:
        state = "complete" if is_complete(folder) else f"INCOMPLETE: {there:,} recorded"
        yield "rounds", f"{manifest.rounds:,}, {state}"
    yield "run by", shortened(manifest.framework, LONGEST)
    if manifest.left_out:
        yield (
            "left out",
            f"{len(manifest.left_out):,} tensors that travelled and are not in the transcript: "
            f"{counted(manifest.left_out)}",
        )
    made = f"overheard {manifest.overheard}, torch {manifest.torch}"
    yield "made with", shortened(made, LONGEST)


def _defenses(manifest: Manifest) -> Iterator[tuple[str, str]]:
    defenses = manifest.defenses
    if not defenses:
        yield "defenses", "none" if manifest.framework == "overheard" else "none told"
    for number, one in enumerate(defenses[:MOST_ROWS]):
        text = (
            f"{shortened(one.settings, LONGEST)}, enforced at the {one.enforced_at}, can be "
            f"switched off by {shortened(one.switched_off_by, LONGEST)}{_mechanism(one)}"
        )
        yield "" if number else "defenses", text
    if len(defenses) > MOST_ROWS:
        yield "", f"and {len(defenses) - MOST_ROWS:,} more"
    if defenses:
        yield "", "So says whoever made the recording: nothing here proves it."


def _mechanism(defense: DefenseRecord) -> str:
    stated = defense.mechanism
    if stated is None:
        return ""
    flaw = f", yet {shortened(stated.flaw, LONGEST)}" if stated.flaw else ""
    return (
        f"; states noise of {stated.noise_multiplier:.4g} x clip {stated.clip:.4g} for one "
        f"{stated.unit}, added at the {stated.noised_at}{flaw}"
    )


@dataclass(slots=True)
class _Seen:
    """How many messages of each kind somebody can read, counted up."""

    kinds: Counter[type[Body]] = field(default_factory=Counter)
    sizes: int = 0

    def add(self, body: Body) -> None:
        self.kinds[type(body)] += 1
        self.sizes += isinstance(body, Update) and body.examples is not None

    def row(self) -> tuple[int, ...]:
        return (*(self.kinds[kind] for kind in COLUMNS.values()), self.sizes)


def _table(messages: Sequence[Message]) -> Table:
    """A row an observer; every message is looked at once, however many read it."""
    everything, seen = _Seen(), defaultdict[Party, _Seen](_Seen)
    for message in messages:
        everything.add(message.body)
        for who in message.readers | {message.sender}:
            seen[who].add(message.body)
    seen.pop(COHORT, None)
    rows = {who: seen[who].row() for who in sorted(seen)}
    whole = everything.row()
    # What is nowhere needs no column.
    kept = [place for place, count in enumerate(whole) if count or place < 2]
    heads = [(*COLUMNS, SIZES)[place] for place in kept]
    table = Table(
        Column("observer", overflow="fold"),
        *(Column(head, no_wrap=True, justify="right") for head in heads),
        box=SIMPLE,
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )
    for name, low, high in _grouped(rows):
        cells = [
            f"{low[place]:,}"
            if low[place] == high[place]
            else f"{low[place]:,}-{high[place]:,}"
            for place in kept
        ]
        table.add_row(plain(name), *cells)
    table.add_section()
    table.add_row("all there is", *(f"{whole[place]:,}" for place in kept))
    return table


Row = tuple[int, ...]


def _grouped(rows: dict[Party, Row]) -> Iterator[tuple[str, Row, Row]]:
    """Who, and the least and the most of what they can read."""
    if len(rows) <= MOST_ROWS:
        yield from ((who, row, row) for who, row in rows.items())
        return
    alike = defaultdict[Row, list[Party]](list)
    for who, row in rows.items():
        alike[row].append(who)
    # The server first, then the largest groups.
    groups = sorted(alike.items(), key=lambda group: (SERVER not in group[1], -len(group[1])))
    for row, names in groups[: MOST_ROWS - 1]:
        more = len(names) - 1
        yield f"{names[0]}{f' and {more:,} more' if more else ''}", row, row
    rest = groups[MOST_ROWS - 1 :]
    if rest:
        places = list(zip(*(row for row, _ in rest), strict=True))
        count = sum(len(names) for _, names in rest)
        yield f"{count:,} others", tuple(map(min, places)), tuple(map(max, places))


def _who_reads_whom(messages: Sequence[Message]) -> Iterator[str]:
    told: dict[str, type[Body]] = {"updates": Update, "distilled sets": DistilledSet}
    is_silent = True
    for what, kind in told.items():
        heard = defaultdict[Party, set[Party]](set)
        for message in messages:
            if isinstance(message.body, kind) and message.sender != SERVER:
                for who in message.readers - {message.sender, COHORT}:
                    heard[who].add(message.sender)
        by_count = defaultdict[int, list[Party]](list)
        for who in sorted(heard):
            by_count[len(heard[who])].append(who)
        for others, readers in sorted(by_count.items(), reverse=True)[:MOST_ROWS]:
            is_silent = False
            verb = "reads" if len(readers) == 1 else "read"
            yield f"{counted(readers, 3)} {verb} the {what} of {others:,} others one by one."
    if is_silent:
        yield "Nobody reads another party's single updates."
