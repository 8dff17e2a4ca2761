"""Finds the files of data sets in the folder where a user keeps them."""

import os
from collections.abc import Sequence
from pathlib import Path

from overheard.core.errors import DataError

VARIABLE = "OVERHEARD_DATA"
"""The environment variable that names the data folder where no command says it."""


def data_folder(given: Path | None) -> Path | None:
    """The folder given or, failing that, the one that `OVERHEARD_DATA` names.

    Raises:
        DataError: if there is no such folder.

    """
    said = os.environ.get(VARIABLE)
    folder = given if given is not None else Path(said) if said else None
    if folder is not None and not folder.is_dir():
        where = "--data" if given is not None else f"the environment variable {VARIABLE}"
        raise DataError(f"the data folder {folder} does not exist: correct {where}")
    return folder


def find_file(folder: Path | None, places: Sequence[str]) -> Path | None:
    """The first of these places, such as `mnist/mnist.npz`, at which the folder has a file.

    A file that lies in the folder itself, without the sub-folder, is found too.
    """
    if folder is None:
        return None
    for place in places:
        for path in (folder / place, folder / Path(place).name):
            if path.is_file():
                return path
    return None


def need_file(folder: Path | None, places: Sequence[str], origin: str) -> Path:
    """The first of these places at which the folder has a file.

    Raises:
        DataError: if there is none; `origin` then tells the user where to get it.

    """
    found = find_file(folder, places)
    if found is None:
        raise DataError(f"{where_to_put(folder, places)}; it comes from {origin}")
    return found


def where_to_put(folder: Path | None, places: Sequence[str]) -> str:
    """Tell the user which file to put where."""
    if folder is None:
        return (
            f"no data folder is named: put {places[0]} into one and name that folder "
            f"with --data DIR or {VARIABLE}"
        )
    return f"{places[0]} is not in {folder}: put it at {folder / places[0]}"
