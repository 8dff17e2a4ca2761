"""Names of code that a user gives as "package.module:name": found, and imported.

No other module imports what a user names; `core.plugin_registry` imports plugins.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_args, get_type_hints

from overheard.core.custom_code.failure import describe_failure
from overheard.core.errors import AuditError

REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""Matches a reference to a function or a class."""

BY_USER = "names code or a file, so that only a user may give it"

OutsideName = Annotated[str, BY_USER]
"""The type of a plugin's setting that is a name of code or of a file.

Such a setting is never taken from a recording, whoever made it.
"""

NO_CODE_VARIABLE = "OVERHEARD_NO_CODE"
"""The environment variable that refuses code of others; worker processes inherit it."""

PACKAGE = "overheard"


def is_code_refused() -> bool:
    """Return whether code of others is refused, as with --no-code."""
    return os.environ.get(NO_CODE_VARIABLE, "") not in ("", "0")


def refuse_code() -> None:
    """Refuse code of others from now on, in worker processes that start later too."""
    os.environ[NO_CODE_VARIABLE] = "1"


def import_reference(reference: str, place: str, error: type[AuditError]) -> object:
    """Import the function or class that a reference names.

    A module that is not installed is looked for in the working directory, after all other
    places, so that it hides no other module.

    Args:
        reference: "package.module:name".
        place: where a plan names it, for messages.
        error: the class of the errors.

    Raises:
        AuditError: of class `error`, if the module cannot be imported or has no such name, or
            if code of others is refused.

    """
    if is_code_refused():
        raise error(
            f"{place}: {reference} is code, which --no-code refuses: read it, and leave out "
            "--no-code if you trust it"
        )
    module_name, _, name = reference.partition(":")
    try:
        module = _import(module_name)
    # The user's own module may fail in any way while it is imported.
    except (Exception, SystemExit) as failure:
        remedy = (
            "install its package, or put its folder on PYTHONPATH"
            if isinstance(failure, ImportError)
            else "correct this module"
        )
        raise error(
            f"{place}: {reference} cannot be imported ({describe_failure(failure)}): {remedy}"
        ) from failure
    try:
        return vars(module)[name]
    except KeyError as failure:
        close = get_close_matches(name, vars(module), n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise error(
            f"{place}: {module_name} has no function or class {name}{hint}: correct the "
            "reference"
        ) from failure


# Any: a function of the user may take and return anything.
def import_function(reference: str, place: str, error: type[AuditError]) -> Callable[..., Any]:
    """Import the function or class that a reference names; see `import_reference`.

    Raises:
        AuditError: of class `error`, also if it cannot be called.

    """
    function = import_reference(reference, place, error)
    if not callable(function):
        raise error(
            f"{place}: {reference} is of type {type(function).__name__}, not a function: "
            "correct the reference"
        )
    return function


def _import(module_name: str) -> ModuleType:
    try:
        return import_module(module_name)
    except ModuleNotFoundError as failure:
        folder = str(Path.cwd())
        missing = (failure.name or "").partition(".")[0]
        if missing != module_name.partition(".")[0] or folder in sys.path:
            raise
        sys.path.append(folder)
        return import_module(module_name)


def find_module_file(name: str, *folders: Path) -> Path | None:
    """Return the file of a module, without importing it or a package above it.

    Args:
        name: dotted name of the module.
        folders: where to look after all other places.

    Returns:
        the file; None if there is none, as for a module that is built into Python.

    """
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is not None:
        return Path(file)
    try:
        spec = _find_spec(name, (*sys.path, *map(str, folders)))
    except (ImportError, ValueError):  # such as the module `__main__` of a notebook
        return None
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    return Path(spec.origin)


@cache
def _find_spec(name: str, search_path: tuple[str, ...]) -> ModuleSpec | None:
    above = name.rpartition(".")[0]
    if not above:
        return find_spec(name) or PathFinder.find_spec(name, list(search_path))
    # `find_spec` would import the packages above.
    package = _find_spec(above, search_path)
    inside = None if package is None else package.submodule_search_locations
    if not inside:
        return None
    try:
        return PathFinder.find_spec(name, list(inside))
    except KeyError:  # a package without `__init__.py` looks for those above among the imported
        spec = ModuleSpec(name, None, is_package=True)
        last = name.rpartition(".")[2]
        spec.submodule_search_locations = [str(Path(folder, last)) for folder in inside]
        return spec


# Any plugin: its settings are the fields of its dataclass.
def outside_settings(plugin: type) -> frozenset[str]:
    """Return the settings of a plugin's class that may be names of code or of files.

    A plugin of another package may import what any text names.
    """
    if not is_dataclass(plugin):
        return frozenset()
    names = frozenset(one.name for one in fields(plugin))
    if plugin.__module__.partition(".")[0] != PACKAGE:
        return names
    hints = get_type_hints(plugin, include_extras=True)
    return frozenset(name for name in names if _is_by_user(hints[name]))


# Any: an annotation.
def _is_by_user(hint: object) -> bool:
    return BY_USER in getattr(hint, "__metadata__", ()) or any(map(_is_by_user, get_args(hint)))


def references_of(plugin: object) -> Iterator[str]:
    """Yield the references to code in the settings of a plugin."""
    for name in sorted(outside_settings(type(plugin))):
        setting = getattr(plugin, name)
        if isinstance(setting, str) and REFERENCE.fullmatch(setting):
            yield setting
