"""The data folder of the user, and the data files in it."""

import os
from collections.abc import Sequence
from pathlib import Path

from overheard.core.errors import DataError

FOLDER_VARIABLE = "OVERHEARD_DATA"
"""The environment variable that names the data folder if no command does."""


def data_folder(given: Path | None) -> Path | None:
    """Return the given folder or, without one, the folder that `OVERHEARD_DATA` names.

    Raises:
        DataError: if the folder does not exist.

    """
    from_environment = os.environ.get(FOLDER_VARIABLE)
    folder = (
        given if given is not None else Path(from_environment) if from_environment else None
    )
    if folder is not None and not folder.is_dir():
        source = (
            "--data" if given is not None else f"the environment variable {FOLDER_VARIABLE}"
        )
        raise DataError(f"the data folder {folder} does not exist: correct {source}")
    return folder


def find_file(folder: Path | None, file_names: Sequence[str]) -> Path | None:
    """Return the first of these files, such as `mnist/mnist.npz`, that is in the folder.

    A file directly in the folder, without the sub-folder, is found too.

    Raises:
        DataError: if something else has its name, such as a folder.

    """
    if folder is None:
        return None
    for file_name in file_names:
        for path in (folder / file_name, folder / Path(file_name).name):
            if path.is_file():
                return path
            if os.path.lexists(path):
                raise DataError(f"{path} is no regular file: remove it, or put the file there")
    return None


def require_file(folder: Path | None, file_names: Sequence[str], origin: str) -> Path:
    """Return the first of these files that is in the folder.

    Raises:
        DataError: if there is none; the message says by `origin` where to get it.

    """
    found = find_file(folder, file_names)
    if found is None:
        raise DataError(f"{placement_hint(folder, file_names)}; it comes from {origin}")
    return found


def placement_hint(folder: Path | None, file_names: Sequence[str]) -> str:
    """Return a hint that says which file to put where."""
    if folder is None:
        return (
            f"no data folder is set: put {file_names[0]} into one and name the folder "
            f"with --data DIR or {FOLDER_VARIABLE}"
        )
    return f"{file_names[0]} is not in {folder}: put it at {folder / file_names[0]}"
