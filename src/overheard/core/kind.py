"""A kind of part, such as attacks or defenses, and where its parts are found."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, distributions
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import Generic, TypeVar, final

from overheard.core.discover import concrete_class, discover, module_names

T = TypeVar("T")


class PluginWarning(UserWarning):
    """A part of another package cannot be used and is left out."""


@final
@dataclass(frozen=True, slots=True)
class Origin:
    """The installed distribution that a part comes from.

    Args:
        name: as in `pip install NAME`.
        version: that is installed.

    """

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def _accept(part: type) -> None:
    """Take every part."""


@final
@dataclass(frozen=True)
class Kind(Generic[T]):
    """Parts of one contract: ours, each found by its file, and those of installed packages.

    An installed package offers a part by an entry point of the group `overheard.KIND`, whose
    name is the part's and whose value is `module:Class`. One that does not fit is left out with
    a `PluginWarning`. So is one whose name is taken: ours come first, then those of packages in
    the order of the alphabet. Entry points are read once, when parts are first asked for.

    Args:
        name: of the kind, in the plural, such as "attacks".
        contract: the class that each part implements.
        package: dotted name of the package in which our parts stand, one a file.
        room: where the package has a folder a question: the package or module in each of these
            folders in which the parts stand. Of a module the folder names the part.
        check: called on each part of an installed package; raises if the part does not fit.

    """

    name: str
    contract: type[T]
    package: str
    room: str = ""
    check: Callable[[type[T]], object] = field(default=_accept, repr=False)

    def parts(self) -> Mapping[str, type[T]]:
        """Return the parts by name, in the order of the alphabet.

        Raises:
            TypeError: if a module of ours defines no part or several, or two have one name.

        """
        return _found(self).parts

    def origin(self, name: str) -> Origin | None:
        """Return the distribution that a part comes from; None if it is ours or unknown."""
        return _found(self).origins.get(name)


@final
@dataclass(frozen=True, slots=True)
class _Found(Generic[T]):
    parts: Mapping[str, type[T]]
    origins: Mapping[str, Origin]


# One answer for each kind, as long as Python runs: what is installed does not change.
@cache
def _found(kind: Kind[T]) -> _Found[T]:
    parts, origins = _ours(kind), dict[str, Origin]()
    for entry, origin in _entries(f"overheard.{kind.name}"):
        if entry.name in parts:
            holder = origins.get(entry.name, "overheard itself")
            _warn(entry, origin, f"the name is taken by {holder}", "rename the part")
            continue
        # A package of others may fail in any way while it is imported.
        try:
            part = _loaded(entry, kind)
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            _warn(entry, origin, reason, "update, mend or uninstall the package")
            continue
        parts[entry.name], origins[entry.name] = part, origin
    return _Found(MappingProxyType(dict(sorted(parts.items()))), MappingProxyType(origins))


def _ours(kind: Kind[T]) -> dict[str, type[T]]:
    package = import_module(kind.package)
    if not kind.room:
        return discover(package, kind.contract)
    found: dict[str, type[T]] = {}
    for folder, room in _rooms(package, kind.room):
        parts = (
            discover(room, kind.contract)
            if hasattr(room, "__path__")
            else {folder: concrete_class(room, kind.contract, folder)}
        )
        if found.keys() & parts.keys():
            raise TypeError(f"{room.__name__}: {sorted(found.keys() & parts.keys())} twice")
        found |= parts
    return found


def _rooms(package: ModuleType, room: str) -> Iterator[tuple[str, ModuleType]]:
    for folder in module_names(package):
        place = f"{package.__name__}.{folder}.{room}"
        if find_spec(place) is not None:
            yield folder, import_module(place)


def _entries(group: str) -> list[tuple[EntryPoint, Origin]]:
    """The entry points of a group, in the order of the alphabet, and who offers them."""
    held = [pair for pair in _installed() if pair[0].group == group]
    return sorted(held, key=lambda pair: (pair[1].name, pair[0].name))


# A few milliseconds for all kinds together.
@cache
def _installed() -> tuple[tuple[EntryPoint, Origin], ...]:
    """All entry points of our groups, and who offers them."""
    found = dict[str, list[tuple[EntryPoint, Origin]]]()
    for distribution in distributions():
        if "[overheard." not in (distribution.read_text("entry_points.txt") or ""):
            continue
        origin = Origin(distribution.name, distribution.version)
        # Of two of one name Python imports the one that comes first.
        if origin.name in found:
            continue
        try:
            found[origin.name] = [
                (entry, origin)
                for entry in distribution.entry_points
                if entry.group.startswith("overheard.")
            ]
        except (TypeError, ValueError) as error:
            found[origin.name] = []
            warnings.warn(
                f"{origin}: its entry_points.txt cannot be read ({error}), and its parts are "
                "left out. To mend it, reinstall or uninstall the package.",
                PluginWarning,
                stacklevel=2,
            )
    return tuple(pair for pairs in found.values() for pair in pairs)


def _loaded(entry: EntryPoint, kind: Kind[T]) -> type[T]:
    part: object = entry.load()
    if not (inspect.isclass(part) and issubclass(part, kind.contract)):
        raise TypeError(f"{entry.value} is no subclass of {kind.contract.__name__}")
    if inspect.isabstract(part):
        missing = ", ".join(sorted(getattr(part, "__abstractmethods__")))  # noqa: B009
        raise TypeError(f"{entry.value} is abstract: it does not define {missing}")
    if "__dataclass_fields__" not in vars(part):
        raise TypeError(f"{entry.value} is no dataclass, whose fields are its settings")
    name = getattr(part, "name", None)
    if name != entry.name:
        raise TypeError(f"{entry.value} is named {name!r}: entry and class take the same name")
    kind.check(part)
    return part


def _warn(entry: EntryPoint, origin: Origin, reason: str, mend: str) -> None:
    warnings.warn(
        f"{origin}: its entry point {entry.name!r} ({entry.value}) in the group "
        f"{entry.group!r} is left out, because of this: {reason}. To mend it, {mend}.",
        PluginWarning,
        stacklevel=2,
    )
