"""Lists what a plan can name, the papers and the terms of the glossary."""

import inspect
from dataclasses import MISSING, fields
from typing import Any

from rich.console import Console, Group
from rich.padding import Padding
from rich.text import Text

from overheard.papers.registry import discover_papers
from overheard.plans.registries import REGISTRIES
from overheard.report.terms import read_terms


def list_parts(kind: str, console: Console) -> None:
    """Print every part of a kind, every experiment of every paper, or every term."""
    if kind == "papers":
        _list_papers(console)
        return
    if kind == "terms":
        _list_terms(console)
        return
    selected = next(one for one in REGISTRIES if one.name == kind)
    for name, part in selected.plugins().items():
        origin = selected.origin(name)
        lines = [
            Text(_first_line(part)),
            *_settings(part),
            Text(part.source, style="dim"),
            *([] if origin is None else [Text(f"from {origin}", style="dim")]),
        ]
        console.print(Text(name, style="bold"))
        console.print(Padding(Group(*lines), (0, 0, 1, 4)))


def _list_papers(console: Console) -> None:
    for name, paper in discover_papers().items():
        console.print(Text(f"{name}  {paper.title}", style="bold"))
        for key, experiment in paper.experiments().items():
            console.print(Padding(Text(f"{name}/{key}  {experiment.title}"), (0, 0, 0, 4)))
        console.print(Padding(Text(paper.source, style="dim"), (0, 0, 1, 4)))


def _list_terms(console: Console) -> None:
    for term in read_terms():
        source = [Text(term.source, style="dim")] if term.source else []
        console.print(Text(term.name, style="bold"))
        console.print(Padding(Group(Text(term.meaning), *source), (0, 0, 1, 4)))


def _first_line(part: type) -> str:
    return (inspect.getdoc(part) or "").split("\n", maxsplit=1)[0]


def _settings(part: type) -> list[Text]:
    return [
        Text(f"{field.name}: {_type_name(field.type)}{_default(field)}", style="cyan")
        for field in fields(part)
    ]


def _type_name(hint: object) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")


def _default(field: Any) -> str:
    if field.default is not MISSING:
        return f" = {field.default!r}"
    return "" if field.default_factory is MISSING else f" = {field.default_factory()!r}"
