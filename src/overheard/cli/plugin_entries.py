"""Reads the entries of lists from the classes of plugins and papers."""

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from overheard.cli.list_entries import ListEntry
from overheard.papers.registry import discover_papers
from overheard.plans.registries import REGISTRIES

PAPERS = "papers"


def own_entries() -> Mapping[str, tuple[ListEntry, ...]]:
    """Return the entries of Overheard's own plugins and papers, by kind."""
    kinds = {one.name: plugin_entries(one.name) for one in REGISTRIES}
    own = {
        kind: tuple(entry for entry in entries if not entry.origin)
        for kind, entries in kinds.items()
    }
    return {**own, PAPERS: _paper_entries()}


def plugin_entries(kind: str) -> tuple[ListEntry, ...]:
    """Return the entries of all plugins of a kind, those of other packages included."""
    registry = next(one for one in REGISTRIES if one.name == kind)
    return tuple(
        ListEntry(
            name, _first_line(plugin), _settings(plugin), plugin.source, str(origin or "")
        )
        for name, plugin in registry.plugins().items()
        for origin in (registry.origin(name),)
    )


def _paper_entries() -> tuple[ListEntry, ...]:
    return tuple(
        ListEntry(
            name,
            paper.title,
            tuple(
                f"{name}/{key}  {experiment.title}"
                for key, experiment in paper.experiments().items()
            ),
            paper.source,
        )
        for name, paper in discover_papers().items()
    )


def _first_line(plugin: type) -> str:
    return (inspect.getdoc(plugin) or "").split("\n", maxsplit=1)[0]


def _settings(plugin: type) -> tuple[str, ...]:
    return tuple(
        f"{field.name}: {_type_name(field.type)}{_default(field)}" for field in fields(plugin)
    )


def _type_name(hint: object) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")


# Any: a field of a dataclass has a default of any type.
def _default(field: Any) -> str:
    if field.default is not MISSING:
        return f" = {field.default!r}"
    return "" if field.default_factory is MISSING else f" = {field.default_factory()!r}"
