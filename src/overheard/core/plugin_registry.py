"""A registry of plugins of one kind, such as attacks or defenses."""

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

from overheard.core.plugin_discovery import concrete_class, discover_plugins, module_names

T = TypeVar("T")


class PluginWarning(UserWarning):
    """A plugin of another package cannot be used and is left out."""


@final
@dataclass(frozen=True, slots=True)
class PluginOrigin:
    """The installed distribution that a plugin comes from.

    Args:
        name: as in `pip install NAME`.
        version: the installed version.

    """

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def _accept(plugin: type) -> None:
    """Accept every plugin."""


@final
@dataclass(frozen=True)
class PluginRegistry(Generic[T]):
    """The plugins that implement one contract: built-in ones and those of installed packages.

    An installed package offers a plugin by an entry point of a group such as
    `overheard.attacks`. The entry point has the plugin's name, and its value is `module:Class`.
    A plugin that does not fit, or whose name is taken, is left out with a `PluginWarning`.
    Built-in plugins take precedence, then packages in alphabetical order. Entry points are read
    once, on first use.

    Args:
        name: the name of the registry, in the plural, such as "attacks".
        contract: the class that each plugin implements.
        package: dotted name of the package with the built-in plugins.
        submodule: if the package has a folder per question: the package or module in each
            folder that holds the plugins. If it is a module, its plugin is named after the
            folder.
        check: called on each plugin of an installed package; raises if it does not fit.

    """

    name: str
    contract: type[T]
    package: str
    submodule: str = ""
    check: Callable[[type[T]], object] = field(default=_accept, repr=False)

    def plugins(self) -> Mapping[str, type[T]]:
        """Return the plugins by name, in alphabetical order.

        Raises:
            TypeError: if a built-in module defines no plugin, or a name occurs twice.

        """
        return _find_plugins(self).plugins

    def origin(self, name: str) -> PluginOrigin | None:
        """Return the distribution that a plugin comes from; None if built in or unknown."""
        return _find_plugins(self).origins.get(name)


@final
@dataclass(frozen=True, slots=True)
class _FoundPlugins(Generic[T]):
    plugins: Mapping[str, type[T]]
    origins: Mapping[str, PluginOrigin]


# Cached per registry for the life of the process: installed packages do not change.
@cache
def _find_plugins(registry: PluginRegistry[T]) -> _FoundPlugins[T]:
    plugins, origins = _built_in_plugins(registry), dict[str, PluginOrigin]()
    for entry, origin in _entry_points(f"overheard.{registry.name}"):
        if entry.name in plugins:
            holder = origins.get(entry.name, "overheard itself")
            _warn(entry, origin, f"the name is taken by {holder}", "rename the plugin")
            continue
        # Another package may fail in any way while it is imported.
        try:
            plugin = _load_plugin(entry, registry)
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            _warn(entry, origin, reason, "update, repair or uninstall the package")
            continue
        plugins[entry.name], origins[entry.name] = plugin, origin
    return _FoundPlugins(
        MappingProxyType(dict(sorted(plugins.items()))), MappingProxyType(origins)
    )


def _built_in_plugins(registry: PluginRegistry[T]) -> dict[str, type[T]]:
    package = import_module(registry.package)
    if not registry.submodule:
        return discover_plugins(package, registry.contract)
    found: dict[str, type[T]] = {}
    for folder, room in _submodules(package, registry.submodule):
        plugins = (
            discover_plugins(room, registry.contract)
            if hasattr(room, "__path__")
            else {folder: concrete_class(room, registry.contract, folder)}
        )
        if found.keys() & plugins.keys():
            twice = sorted(found.keys() & plugins.keys())
            raise TypeError(f"{room.__name__}: plugin names {twice} occur twice: rename them")
        found |= plugins
    return found


def _submodules(package: ModuleType, room: str) -> Iterator[tuple[str, ModuleType]]:
    for folder in module_names(package):
        name = f"{package.__name__}.{folder}.{room}"
        if find_spec(name) is not None:
            yield folder, import_module(name)


def _entry_points(group: str) -> list[tuple[EntryPoint, PluginOrigin]]:
    """List the entry points of a group with their distributions, in alphabetical order."""
    pairs = [pair for pair in _installed_entry_points() if pair[0].group == group]
    return sorted(pairs, key=lambda pair: (pair[1].name, pair[0].name))


# Takes a few milliseconds for all registries together.
@cache
def _installed_entry_points() -> tuple[tuple[EntryPoint, PluginOrigin], ...]:
    """List all entry points of Overheard's groups with their distributions."""
    found = dict[str, list[tuple[EntryPoint, PluginOrigin]]]()
    for distribution in distributions():
        if "[overheard." not in (distribution.read_text("entry_points.txt") or ""):
            continue
        origin = PluginOrigin(distribution.name, distribution.version)
        # If two distributions have one name, Python imports the first.
        if origin.name in found:
            continue
        try:
            # A backport of importlib.metadata, once imported, yields entries of its own class.
            found[origin.name] = [
                (EntryPoint(entry.name, entry.value, entry.group), origin)
                for entry in distribution.entry_points
                if entry.group.startswith("overheard.")
            ]
        except (TypeError, ValueError) as error:
            found[origin.name] = []
            warnings.warn(
                f"{origin}: its entry_points.txt cannot be read ({error}), so its plugins are "
                "left out. To fix this, reinstall or uninstall the package.",
                PluginWarning,
                stacklevel=2,
            )
    return tuple(pair for pairs in found.values() for pair in pairs)


def _load_plugin(entry: EntryPoint, registry: PluginRegistry[T]) -> type[T]:
    plugin: object = entry.load()
    if not (inspect.isclass(plugin) and issubclass(plugin, registry.contract)):
        raise TypeError(f"{entry.value} is no subclass of {registry.contract.__name__}")
    if inspect.isabstract(plugin):
        missing = ", ".join(sorted(getattr(plugin, "__abstractmethods__")))  # noqa: B009
        raise TypeError(f"{entry.value} is abstract: it does not define {missing}")
    if "__dataclass_fields__" not in vars(plugin):
        raise TypeError(f"{entry.value} is no dataclass: its settings must be dataclass fields")
    name = getattr(plugin, "name", None)
    if name != entry.name:
        raise TypeError(
            f"{entry.value} has the name {name!r}: give the entry point and the class one name"
        )
    registry.check(plugin)
    return plugin


def _warn(entry: EntryPoint, origin: PluginOrigin, reason: str, remedy: str) -> None:
    warnings.warn(
        f"{origin}: its entry point {entry.name!r} ({entry.value}) in the group "
        f"{entry.group!r} is left out: {reason}. To fix this, {remedy}.",
        PluginWarning,
        stacklevel=2,
    )
