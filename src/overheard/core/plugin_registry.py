"""A registry of plugins of one kind, such as attacks or defenses."""

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, distributions
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType
from typing import Generic, TypeVar, final

from overheard.core.custom_code.reference import PACKAGE, is_code_refused

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
    once, on first use. Packages in the working directory are left out, and so are all of them
    with --no-code.

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


def import_built_in(name: str) -> ModuleType:
    """Import a module of Overheard by its dotted name.

    Raises:
        ValueError: if it is a module of others.

    """
    if name.partition(".")[0] != PACKAGE:
        raise ValueError(f"{name} is no module of Overheard")
    return import_module(name)


def discover_plugins(package: str, base: type[T]) -> dict[str, type[T]]:
    """Map the name of each concrete subclass of `base` in a package to the class, in order.

    A family of plugins may share a module.

    Args:
        package: dotted name of the package.
        base: the class that each plugin implements.

    Raises:
        TypeError: if a module defines none, a class has no `name`, or a name occurs twice.

    """
    found = dict[str, type[T]]()
    for module in _module_names(import_module(package)):
        for name, plugin in _named_classes(import_module(f"{package}.{module}"), base):
            if name in found:
                raise TypeError(
                    f"{package}: {found[name].__name__} and {plugin.__name__} are "
                    f"both named {name!r}: rename one"
                )
            found[name] = plugin
    return dict(sorted(found.items()))


@final
@dataclass(frozen=True, slots=True)
class _DiscoveredPlugins(Generic[T]):
    plugins: Mapping[str, type[T]]
    origins: Mapping[str, PluginOrigin]


# Cached per registry for the life of the process: installed packages do not change.
@cache
def _find_plugins(registry: PluginRegistry[T]) -> _DiscoveredPlugins[T]:
    plugins, origins = _built_in_plugins(registry), dict[str, PluginOrigin]()
    for entry, origin in [] if is_code_refused() else _entry_points(registry.name):
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
    return _DiscoveredPlugins(
        MappingProxyType(dict(sorted(plugins.items()))), MappingProxyType(origins)
    )


def _built_in_plugins(registry: PluginRegistry[T]) -> dict[str, type[T]]:
    if not registry.submodule:
        return discover_plugins(registry.package, registry.contract)
    found: dict[str, type[T]] = {}
    for folder, room in _submodules(registry.package, registry.submodule):
        plugins = (
            discover_plugins(room.__name__, registry.contract)
            if hasattr(room, "__path__")
            else {folder: _concrete_class(room, registry.contract, folder)}
        )
        if found.keys() & plugins.keys():
            twice = sorted(found.keys() & plugins.keys())
            raise TypeError(f"{room.__name__}: plugin names {twice} occur twice: rename them")
        found |= plugins
    return found


def _submodules(package: str, room: str) -> Iterator[tuple[str, ModuleType]]:
    for folder in _module_names(import_module(package)):
        names = list(accumulate((f"{package}.{folder}", *room.split(".")), "{}.{}".format))
        if all(map(find_spec, names)):
            yield folder, import_module(names[-1])


def _module_names(package: ModuleType) -> list[str]:
    """List the modules and packages in a package, in alphabetical order.

    Names that begin with an underscore are left out.
    """
    names = sorted(info.name for info in iter_modules(package.__path__))
    return [name for name in names if not name.startswith("_")]


def _concrete_class(module: ModuleType, base: type[T], name: str) -> type[T]:
    """Return the one concrete subclass of `base` that a module defines.

    Raises:
        TypeError: if it defines none or several, or its class has another `name`.

    """
    named = _named_classes(module, base)
    if len(named) != 1:
        raise TypeError(
            f"{module.__name__} must define one {base.__name__}, but defines {len(named)}"
        )
    ((found, plugin),) = named
    if found != name:
        raise TypeError(
            f"{module.__name__} defines a {base.__name__} named {found!r}: name it {name!r}"
        )
    return plugin


def _named_classes(module: ModuleType, base: type[T]) -> list[tuple[str, type[T]]]:
    """Return the concrete subclasses of `base` that a module defines, with their names."""
    concrete = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and not inspect.isabstract(value)
        and value.__module__ == module.__name__
    ]
    if not concrete:
        raise TypeError(f"{module.__name__} must define a {base.__name__}, but defines none")
    for value in concrete:
        if not isinstance(getattr(value, "name", None), str):
            raise TypeError(f"{module.__name__}: {value.__name__} needs a `name`")
    return [(getattr(value, "name"), value) for value in concrete]  # noqa: B009


def plugin_folders(package: str, kind: str) -> Iterator[Path]:
    """Yield the folders of plugins that have a folder each, without importing them.

    Args:
        package: dotted name of the package with the folders of built-in plugins.
        kind: the name of the registry, such as "questions".

    """
    built_in = find_spec(package)
    for place in (built_in and built_in.submodule_search_locations) or ():
        yield from sorted(path for path in Path(place).iterdir() if path.is_dir())
    for entry, _ in [] if is_code_refused() else _entry_points(kind):
        try:
            module = find_spec(entry.module)
        # Whatever a package raises: its plugin is left out with a warning.
        except Exception:
            continue
        if module and module.origin:
            yield Path(module.origin).parent


def load_studies() -> object | None:
    """Return the module of the installed studies of papers; None = none are installed."""
    found = _entry_points("studies")
    return None if is_code_refused() or not found else found[0][0].load()


def _entry_points(kind: str) -> list[tuple[EntryPoint, PluginOrigin]]:
    """List the entry points of a kind with their distributions, in alphabetical order."""
    group = f"overheard.{kind}"
    pairs = [pair for pair in _installed_entry_points() if pair[0].group == group]
    return sorted(pairs, key=lambda pair: (pair[1].name, pair[0].name))


# Takes a few milliseconds for all registries together.
@cache
def _installed_entry_points() -> tuple[tuple[EntryPoint, PluginOrigin], ...]:
    """List all entry points of Overheard's groups with their distributions."""
    found = dict[str, list[tuple[EntryPoint, PluginOrigin]]]()
    for distribution in distributions(path=_installed_folders()):
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


def _installed_folders() -> list[str]:
    """Return where packages are installed: anywhere but in the working directory.

    That may be a folder that the user was given.
    """
    here = Path.cwd()
    return [one for one in sys.path if one and Path(one).resolve() != here]


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
