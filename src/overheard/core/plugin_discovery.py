"""Finds the plugin classes in a package, so that no list has to be maintained."""

import inspect
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def discover_plugins(package: ModuleType, base: type[T]) -> dict[str, type[T]]:
    """Map each module's name to the one concrete subclass of `base` that it defines.

    Raises:
        TypeError: if a module defines none or several, or its class has another `name`.

    """
    return {
        name: concrete_class(import_module(f"{package.__name__}.{name}"), base, name)
        for name in module_names(package)
    }


def module_names(package: ModuleType) -> list[str]:
    """List the modules and packages in a package, in alphabetical order.

    Names that begin with an underscore are left out.
    """
    names = sorted(info.name for info in iter_modules(package.__path__))
    return [name for name in names if not name.startswith("_")]


def concrete_class(module: ModuleType, base: type[T], name: str) -> type[T]:
    """Return the one concrete subclass of `base` that a module defines.

    Raises:
        TypeError: if it defines none or several, or its class has another `name`.

    """
    concrete = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and not inspect.isabstract(value)
        and value.__module__ == module.__name__
    ]
    if len(concrete) != 1:
        raise TypeError(
            f"{module.__name__} must define one {base.__name__}, but defines {len(concrete)}"
        )
    found = getattr(concrete[0], "name", None)
    if found != name:
        raise TypeError(
            f"{module.__name__} defines a {base.__name__} named {found!r}: name it {name!r}"
        )
    return concrete[0]
