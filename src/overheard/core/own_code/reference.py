"""Imports what a plan names as "package.module:name"."""

import re
import sys
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType

from overheard.core.errors import AuditError
from overheard.core.own_code.failure import describe_failure

REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""Matches a reference to a function or a class."""


def import_reference(reference: str, place: str, error: type[AuditError]) -> object:
    """Import the function or class that a reference names.

    A module that is not installed is looked for in the working directory, after all other
    places, so that it hides no other module.

    Args:
        reference: "package.module:name".
        place: where a plan names it, for messages.
        error: the class of the errors.

    Raises:
        AuditError: of class `error`, if the module cannot be imported or has no such name.

    """
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
