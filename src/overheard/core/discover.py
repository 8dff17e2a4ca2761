"""Finds what stands in a package, so that no list of it has to be kept."""

import inspect
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def discover(package: ModuleType, base: type[T]) -> dict[str, type[T]]:
    """Map each module's name to the one concrete subclass of `base` that it defines.

    Raises:
        TypeError: if a module defines none or several, or its class bears another name.

    """
    found: dict[str, type[T]] = {}
    for info in sorted(iter_modules(package.__path__), key=lambda info: info.name):
        if info.name.startswith("_"):
            continue
        module = import_module(f"{package.__name__}.{info.name}")
        concrete = [
            thing
            for thing in vars(module).values()
            if inspect.isclass(thing)
            and issubclass(thing, base)
            and not inspect.isabstract(thing)
            and thing.__module__ == module.__name__
        ]
        if len(concrete) != 1:
            raise TypeError(
                f"{module.__name__} must define one {base.__name__}, defines {len(concrete)}"
            )
        name = getattr(concrete[0], "name", None)
        if name != info.name:
            raise TypeError(f"{module.__name__} holds a {base.__name__} named {name!r}")
        found[info.name] = concrete[0]
    return found
