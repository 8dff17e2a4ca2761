"""The entries that `overheard list` prints, stored so that listing them loads no plugin."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from json import loads
from typing import final

FILE = "list_entries.json"
"""Beside this module; written by `make face`."""


@final
@dataclass(frozen=True, slots=True)
class ListEntry:
    """A plugin or a paper in a list.

    Args:
        name: the name that a plan or `overheard reproduce` takes.
        title: what it is, in one line.
        details: its settings with types and defaults, or its experiments.
        source: who published it.
        origin: the installed package that it comes from; "" = Overheard.

    """

    name: str
    title: str
    details: tuple[str, ...]
    source: str
    origin: str = ""


def stored_entries() -> Mapping[str, tuple[ListEntry, ...]]:
    """Return the entries of Overheard's own plugins and papers, by kind."""
    stored = loads(files("overheard.cli").joinpath(FILE).read_text(encoding="utf-8"))
    return {
        kind: tuple(ListEntry(**entry | {"details": tuple(entry["details"])}) for entry in own)
        for kind, own in stored.items()
    }
