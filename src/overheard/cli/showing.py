"""Tells what a transcript holds and what each observer of it sees."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from overheard.archive.manifest import read_manifest
from overheard.archive.reader import committed_rounds, is_complete, open_transcript
from overheard.cli.terminal import plain
from overheard.core.messages import (
    Aggregate,
    Body,
    Broadcast,
    DistilledSet,
    Message,
    Missing,
    Update,
)
from overheard.core.parties import COHORT, SERVER, Party

COLUMNS: dict[str, type[Body]] = {
    "broadcasts": Broadcast,
    "updates": Update,
    "aggregates": Aggregate,
    "distilled\nsets": DistilledSet,
    "no\nanswers": Missing,
}


def show(folder: Path, console: Console) -> None:
    """Print a run's manifest, and how many messages of each kind every party can read."""
    manifest = read_manifest(folder)
    transcript = open_transcript(folder)
    recipe = manifest.recipe
    facts = {
        "model": manifest.model or "not told",
        "classes": "not told"
        if manifest.task is None
        else f"{manifest.task.classes} ({', '.join(manifest.task.class_names)})",
        "recipe": "not told" if recipe is None else repr(recipe),
        "defenses": "; ".join(
            f"{one.settings}, enforced at the {one.enforced_at}, can be switched off by "
            f"{one.switched_off_by}"
            for one in manifest.defenses
        )
        or "none",
        "rounds": f"{committed_rounds(folder)} recorded, how many were planned is not told"
        if manifest.rounds is None
        else f"{manifest.rounds}, {'complete' if is_complete(folder) else 'INCOMPLETE'}",
        "run by": manifest.framework,
        "made with": f"overheard {manifest.overheard}, torch {manifest.torch}",
    }
    for name, value in facts.items():
        console.print(Text(f"{name:>10}  ", style="dim") + plain(value))
    console.print()
    names = (*COLUMNS, "sizes\nin clear", "metrics")
    table = Table(
        Column("observer", no_wrap=True), *names, box=SIMPLE, padding=0, pad_edge=False
    )
    observers = [who for who in transcript.parties() if who != COHORT]
    for who in observers:
        table.add_row(Text(who), *_row(transcript.seen_by(who).messages))
    table.add_section()
    table.add_row("all there is", *_row(transcript.messages))
    console.print(table)
    console.print(_who_reads_whom(transcript.messages, observers))


def _row(messages: Iterable[Message]) -> list[str | Text]:
    bodies = [message.body for message in messages]
    kinds = Counter(type(body) for body in bodies)
    updates = [body for body in bodies if isinstance(body, Update)]
    metrics = sorted({name for update in updates for name in update.metrics})
    sizes = sum(update.examples is not None for update in updates)
    return [
        *(str(kinds[body]) for body in COLUMNS.values()),
        str(sizes),
        plain(", ".join(metrics)),
    ]


def _who_reads_whom(messages: Sequence[Message], observers: Iterable[Party]) -> Text:
    lines = Text()
    told: dict[str, type[Body]] = {"updates": Update, "distilled sets": DistilledSet}
    for what, kind in told.items():
        sent = [m for m in messages if isinstance(m.body, kind) and m.sender != SERVER]
        for who in observers:
            others = {m.sender for m in sent if who in m.readers and m.sender != who}
            if others:
                lines.append(f"{who} reads the {what} of {len(others)} others one by one.\n")
    if not lines:
        lines.append("Nobody reads another party's single updates.\n")
    return lines
