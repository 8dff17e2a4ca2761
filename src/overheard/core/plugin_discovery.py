"""Finds the plugin classes in a package, so that no list has to be maintained."""

import ast
import inspect
from collections import Counter
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")

_MODULES = (
    "algorithms/*.py",
    "data/datasets/*.py",
    "data/splits/*.py",
    "defenses/*.py",
    "learning/distillation/methods/*.py",
    "learning/models/*.py",
    "questions/*/attacks/*.py",
    "questions/*/question.py",
    "questions/*/scorer.py",
    "questions/*/scorer/*.py",
)
"""Where modules with a plugin are, in the folder of Overheard."""


def discover_plugins(package: ModuleType, base: type[T]) -> dict[str, type[T]]:
    """Map the name of each concrete subclass of `base` in a package to the class, in order.

    A family of plugins may share a module.

    Raises:
        TypeError: if a module defines none, a class has no `name`, or a name occurs twice.

    """
    found = dict[str, type[T]]()
    for module in module_names(package):
        for name, plugin in _named_classes(import_module(f"{package.__name__}.{module}"), base):
            if name in found:
                raise TypeError(
                    f"{package.__name__}: {found[name].__name__} and {plugin.__name__} are "
                    f"both named {name!r}: rename one"
                )
            found[name] = plugin
    return dict(sorted(found.items()))


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


def plugin_classes(package: Path) -> dict[str, str]:
    """Map the name of each plugin's class to its module, such as "algorithms.fed_avg".

    A plugin is a class that states its `name`. Class names that two plugins share, such as that
    of the data set and of the model `Own`, are left out.

    Args:
        package: the folder of Overheard, with a subfolder for each of its packages.

    """
    found = [
        (name, ".".join(path.relative_to(package).with_suffix("").parts))
        for pattern in _MODULES
        for path in sorted(package.glob(pattern))
        for name in _classes_with_a_name(path.read_text(encoding="utf-8"))
    ]
    names = Counter(name for name, _ in found)
    return {name: module for name, module in found if names[name] == 1}


def _classes_with_a_name(text: str) -> list[str]:
    return [
        statement.name
        for statement in ast.parse(text).body
        if isinstance(statement, ast.ClassDef) and any(map(_sets_name, statement.body))
    ]


def _sets_name(line: ast.stmt) -> bool:
    match line:
        case ast.AnnAssign(target=ast.Name("name"), value=ast.expr()):
            return True
        case ast.Assign(targets=[ast.Name("name")]):
            return True
    return False
