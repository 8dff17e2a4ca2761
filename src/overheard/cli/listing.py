"""Lists what a plan can name, the papers and the terms of the glossary."""

from dataclasses import asdict

from rich.console import Console, Group
from rich.padding import Padding
from rich.text import Text

from overheard.cli.list_entries import ListEntry, plugin_entries
from overheard.report.terms import read_terms


def list_parts(kind: str, console: Console) -> None:
    """Print every part of a kind, every experiment of every paper, or every term."""
    if kind == "terms":
        _list_terms(console)
        return
    for entry in _entries(kind):
        if kind == "papers":
            console.print(Text(f"{entry.name}  {entry.title}", style="bold"))
            lines = [Text(line) for line in entry.details]
        else:
            console.print(Text(entry.name, style="bold"))
            settings = (Text(line, style="cyan") for line in entry.details)
            lines = [Text(entry.title), *settings]
        lines.append(Text(entry.source, style="dim"))
        if entry.origin:
            lines.append(Text(f"from {entry.origin}", style="dim"))
        console.print(Padding(Group(*lines), (0, 0, 1, 4)))


def listed_values(kind: str) -> list[dict[str, object]]:
    """Return every part of a kind, experiment of a paper, or term, as values for JSON."""
    found = read_terms() if kind == "terms" else _entries(kind)
    return [asdict(one) for one in found]


def _entries(kind: str) -> tuple[ListEntry, ...]:
    if kind == "papers":
        from overheard.cli.studies import find_studies  # loads torch

        return find_studies().list_papers()
    return plugin_entries(kind)


def _list_terms(console: Console) -> None:
    for term in read_terms():
        source = [Text(term.source, style="dim")] if term.source else []
        console.print(Text(term.name, style="bold"))
        console.print(Padding(Group(Text(term.meaning), *source), (0, 0, 1, 4)))
