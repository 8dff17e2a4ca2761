"""Reads off a stored run what it holds, who can read what of it, and what travels in clear."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from overheard.archive.layout import committed_rounds
from overheard.archive.manifest import DefenseRecord, Manifest, is_complete, read_manifest
from overheard.archive.reader import open_transcript
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
from overheard.report.in_clear import counted, in_clear
from overheard.report.run_overview import ObserverRow, RunOverview

COLUMNS: dict[str, type[Body]] = {
    "broadcasts": Broadcast,
    "updates": Update,
    "aggregates": Aggregate,
    "distilled sets": DistilledSet,
    "evaluations": Evaluation,
    "no answers": Missing,
}

SIZES = "sizes in clear"

MOST_ROWS = 20
"""Observers that get a row each; of more, those who see as much share one."""

LONGEST = 300
"""Characters of a text from outside that are shown."""


def show(folder: Path) -> RunOverview:
    """Tell what was run, what every party can read, and what travels in clear.

    Args:
        folder: of the run; it holds `transcript/`.

    Raises:
        TranscriptError: if the folder holds no transcript, or a damaged one.

    """
    manifest, messages = read_manifest(folder), open_transcript(folder).messages
    columns, rows, total = _table(messages)
    return RunOverview(
        tuple(_facts(manifest, folder)),
        columns,
        rows,
        total,
        tuple(_who_reads_whom(messages)),
        in_clear(messages),
    )


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


def _table(
    messages: Sequence[Message],
) -> tuple[tuple[str, ...], tuple[ObserverRow, ...], ObserverRow]:
    """The columns, a row an observer, and all there is: each message is looked at once."""
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
    told = tuple(
        ObserverRow(who, tuple(_span(low[place], high[place]) for place in kept))
        for who, low, high in _grouped(rows)
    )
    total = ObserverRow("all there is", tuple(f"{whole[place]:,}" for place in kept))
    return tuple((*COLUMNS, SIZES)[place] for place in kept), told, total


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


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
