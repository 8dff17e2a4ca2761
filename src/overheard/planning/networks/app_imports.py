"""Lets networks be imported from the folder of an app, and tells those of other places."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from overheard.core.custom_code.reference import find_module_file


@contextmanager
def importable_from(folder: Path | None) -> Iterator[None]:
    """Let modules of a folder be imported, after all others; None = nothing changes."""
    if folder is None:
        yield
        return
    place = str(folder.resolve())
    sys.path.append(place)
    try:
        yield
    finally:
        sys.path.remove(place)


def other_place(reference: str, folder: Path) -> str:
    """Return that a module would be imported from elsewhere; "" = it lies in the folder.

    Args:
        reference: "package.module:Class".
        folder: the folder.

    """
    module = reference.partition(":")[0]
    path = find_module_file(module)
    if path is not None and path.resolve().is_relative_to(folder.resolve()):
        return ""
    return f"{module} is imported from {path or 'Python'}: another package has this name"
