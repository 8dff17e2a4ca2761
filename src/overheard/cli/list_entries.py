"""Reads the entries that `overheard list` prints from the classes of plugins and papers."""

import inspect
from dataclasses import MISSING, dataclass, fields
from types import UnionType
from typing import Any, Union, final, get_args, get_origin, get_type_hints


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


def plugin_entries(kind: str) -> tuple[ListEntry, ...]:
    """Return the entries of all plugins of a kind, those of other packages included."""
    from overheard.plans.registries import REGISTRIES  # loads torch

    registry = next(one for one in REGISTRIES if one.name == kind)
    return tuple(
        ListEntry(
            name, _first_line(plugin), _settings(plugin), plugin.source, str(origin or "")
        )
        for name, plugin in registry.plugins().items()
        for origin in (registry.origin(name),)
    )


def _first_line(plugin: type) -> str:
    return (inspect.getdoc(plugin) or "").split("\n", maxsplit=1)[0]


def _settings(plugin: type) -> tuple[str, ...]:
    hints = get_type_hints(plugin)  # without ranges, for which the documentation has room
    return tuple(
        f"{field.name}: {_type_name(hints[field.name])}{_default(field)}"
        for field in fields(plugin)
    )


def _type_name(hint: object) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(map(_type_name, get_args(hint))).replace("NoneType", "None")
    return hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")


# Any: a field of a dataclass has a default of any type.
def _default(field: Any) -> str:
    if field.default is not MISSING:
        return f" = {field.default!r}"
    return "" if field.default_factory is MISSING else f" = {field.default_factory()!r}"
