"""Reads and parses the source files of an app."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import final

from overheard.core.errors import PlanError
from overheard.disk.folders import walk_folders
from overheard.disk.limits import SOURCE_FILES, refuse_large
from overheard.disk.reading import parse_python, read_text

MOST_FILES = 1000
"""The most source files of a package that are read."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SourceFile:
    """A parsed source file of an app.

    Args:
        module: its dotted name.
        path: its path in the app.
        tree: its syntax.

    """

    module: str
    path: str
    tree: ast.Module


def read_sources(folder: Path, paths: Sequence[Path]) -> Iterator[SourceFile]:
    """Yield those source files of a folder that can be parsed.

    Raises:
        PlanError: if they are too large, or a link leads out of the folder.

    """
    size = 0
    for path in paths[:MOST_FILES]:
        text = read_text(path, PlanError, inside=folder, part=SOURCE_FILES)
        size += len(text)
        refuse_large(f"{folder}: the source code", size, PlanError, part=SOURCE_FILES)
        try:
            tree = parse_python(text)
        except SyntaxError:
            continue
        relative = path.relative_to(folder)
        module = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
        yield SourceFile(module, relative.as_posix(), tree)


def source_paths(package: Path) -> list[Path]:
    """Return what a package names as source files, sorted, up to the most that are read.

    A folder with such a name is among them, so that reading it is refused.
    """
    found = [
        folder / name
        for folder, folders, files in islice(walk_folders(package), MOST_FILES)
        for name in (*folders, *files)
        if name.endswith(".py")
    ]
    return sorted(found)
