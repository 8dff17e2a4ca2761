"""Loads a user's own data: arrays, a table, or whatever a function of theirs returns."""

import re
from importlib import import_module
from pathlib import Path

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.data.reading.own_arrays import load_arrays
from overheard.data.reading.own_table import TableColumns, load_table
from overheard.data.reading.texts import TextSettings

FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

TABLES = (".parquet", ".csv", ".csv.gz")


def load_own(
    reference: str,
    *,
    label: str = "label",
    user: str | None = None,
    text: str | None = None,
    time: str | None = None,
    attributes: tuple[str, ...] = (),
    vocabulary: int = 20_000,
    tokens: int = 40,
    seed: Seed = Seed(0),  # noqa: B008 - a value that never changes
) -> Dataset:
    """The data set that a plan refers to.

    Args:
        reference: a path to an `.npz`, `.parquet`, `.csv` or `.csv.gz` file, from the working
            directory; or `package.module:function`, a function without arguments that returns
            a `Dataset`. The function is run: refer to none that you do not trust.
        label: the column of a table that holds the label.
        user: the column that holds the person behind a row; None = untold.
        text: the column to learn from, as text; None = all columns that are left, as numbers
            and categories.
        time: the column that says when a row came to be, as numbers or as dates in ISO form;
            None = untold. Arrays have `times` in their file instead.
        attributes: columns of a table that hold sensitive attributes of the users, each with
            one value a user.
        vocabulary: how many words of a text column have tokens of their own.
        tokens: how many words of a text are read.
        seed: chooses the fifth that is held out where the data have no test part.

    Raises:
        DataError: if there is no such data, or it cannot be learned from.

    """
    if (time is not None or attributes) and not reference.endswith(TABLES):
        raise DataError(
            f"time and attributes are columns of a table, and {reference} is none: leave them "
            "out; arrays have `times` in their file, a function returns all in its Dataset"
        )
    if reference.endswith((".npz", *TABLES)):
        path = Path(reference)
        if not path.is_file():
            raise DataError(
                f"there is no file {reference}: a path is taken from {Path.cwd()}, correct it"
            )
        if path.suffix == ".npz":
            return load_arrays(path, seed)
        columns = TableColumns(label, user, text, time, attributes)
        return load_table(path, columns, TextSettings(vocabulary, tokens), seed)
    if FUNCTION.fullmatch(reference):
        return _returned(reference)
    raise DataError(
        f"{reference!r} is no data: refer to an .npz, {', '.join(TABLES)} file, or to a "
        "function as 'package.module:function'"
    )


def _returned(reference: str) -> Dataset:
    module_name, _, function_name = reference.partition(":")
    try:
        module = import_module(module_name)
        function = vars(module)[function_name]
    except ImportError as failure:
        raise DataError(
            f"{reference} cannot be imported ({failure}): install its package, or put its "
            "folder on PYTHONPATH"
        ) from failure
    except KeyError as failure:
        raise DataError(f"{module_name} has no function {function_name}") from failure
    if not callable(function):
        raise DataError(f"{reference} is a {type(function).__name__}, no function")
    dataset = function()
    if not isinstance(dataset, Dataset):
        raise DataError(
            f"{reference} returned a {type(dataset).__name__}: it must return an "
            "overheard.data.dataset.Dataset"
        )
    return dataset
