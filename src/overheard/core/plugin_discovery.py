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
