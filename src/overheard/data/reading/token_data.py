"""Texts as token ids of a network's own vocabulary."""

import inspect
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from overheard.archive.excerpt import printable_excerpt
from overheard.core.custom_code.builder_arguments import bind_arguments
from overheard.core.custom_code.failure import describe_failure
from overheard.core.custom_code.reference import REFERENCE, import_function
from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.data.listed_records import MEMBER, OWNER
from overheard.data.reading.arrays import list_arrays, read_array
from overheard.data.reading.formats.arrow_folder import (
    checked_class_names,
    is_arrow_folder,
    read_arrow_folder,
    read_features,
    stated_class_names,
)
from overheard.data.reading.formats.leaf import is_leaf
from overheard.data.reading.table_names import name_order, read_names_of_column
from overheard.data.reading.text_table import read_text_table
from overheard.data.reading.token_rows import (
    IDS,
    MASK,
    ReadTexts,
    TokenSettings,
    dataset_of_texts,
    whole_numbers,
)
from overheard.disk.reading import parse_json, read_json_text

PAIRS = "token_type_ids"
"""How tokenizers of Hugging Face name which of two texts a token is of."""

MOST_LINES = 250_000
"""The most lines of JSON that are read: each takes 20 microseconds of a core, and 1 KB."""

LABELS = ("label", "labels")
"""Usual names of the column of labels."""

HOW_TO_RETURN = (
    "return token ids and labels as a tuple, `return ids, labels`, token ids alone for a "
    "language model, or a tokenised datasets.Dataset with the column input_ids"
)


def load_tokens(
    reference: str,
    settings: TokenSettings,
    *,
    label: str = "label",
    text: str | None = None,
    header_lines: int = 1,
    listed: str | None = None,
    seed: Seed = Seed(0),  # noqa: B008 - a value that never changes
) -> Dataset:
    """Load texts as token ids; a fifth of each label is held out.

    Args:
        reference: an `.npz` with `x` (or `input_ids`) and, unless a language model is trained,
            `y` (or `labels`); a table with a column of texts; a folder that
            `datasets.Dataset.save_to_disk` wrote; or a function, which is run.
        settings: how texts become token ids.
        label: the column of the labels; a table without it is for a language model.
        text: the column of the texts; of a folder, too.
        header_lines: lines with names of columns in a `.csv`.
        listed: a file or folder of any of these forms with candidate records, and `owner` or
            `member` of each; None = no list.
        seed: chooses the fifth.

    Raises:
        DataError: if the data do not exist or cannot be used.

    """
    read = _read_file(reference, label, text, settings, header_lines)
    if read is None:
        returned = _call(reference)
        if isinstance(returned, Dataset):
            if listed is not None:
                raise DataError(
                    f"{reference} returned a Dataset, which has its candidate records itself "
                    f"(listed): leave out {listed}, or return token ids"
                )
            return returned
        read = _read_returned(returned, reference)
    if listed is None:
        return dataset_of_texts(reference, read, settings, seed)
    candidates = _read_file(listed, label, text, settings, header_lines)
    if candidates is None or not candidates.owners:
        raise DataError(
            f"{listed}: candidate records are texts or token ids in a file, in the form of the "
            f"data, with a column {OWNER!r} (the client of a text, or none) or {MEMBER!r} (1 "
            "or 0): add one of them"
        )
    return dataset_of_texts(reference, read, settings, seed, (listed, candidates))


def _read_file(
    reference: str, label: str, text: str | None, settings: TokenSettings, header_lines: int
) -> ReadTexts | None:
    """Return the texts of a file or folder; None = the reference names a function."""
    path = Path(reference)
    if path.suffix == ".npz":
        return _read_arrays(path)
    if is_arrow_folder(reference):
        return _read_arrow(path, label, text, settings)
    if REFERENCE.fullmatch(reference):
        return None
    return _read_table(path, label, text, settings, header_lines)


def _call(reference: str) -> object:
    function = import_function(reference, "data", DataError)
    try:
        return function()
    except Exception as error:
        raise DataError(f"data: {reference} failed, {describe_failure(error)}") from error


def tokens_of_returned(returned: object, reference: str, seed: Seed) -> Dataset | None:
    """Return the data set of a tokenised `datasets.Dataset`, or of a mapping with `input_ids`.

    None = it is neither. The vocabulary is as large as the ids say.
    """
    columns = _columns(returned, reference)
    if columns is None:
        return None
    return dataset_of_texts(reference, _of_columns(columns, reference), TokenSettings(), seed)


# A function of the user may return anything.
def _columns(returned: object, reference: str) -> Mapping[str, Any] | None:
    library: Any = sys.modules.get("datasets")
    if library is not None and isinstance(returned, library.DatasetDict):
        raise DataError(
            f"{reference} returned the parts {', '.join(returned)}: return one of them"
        )
    if library is not None and isinstance(returned, library.Dataset):
        table: Any = returned.with_format(None)
        if IDS not in table.column_names:
            return None
        wanted = [one for one in (IDS, MASK, PAIRS, *LABELS) if one in table.column_names]
        found = dict(table.select_columns(wanted)[:])
        for name in LABELS:
            names = getattr(table.features.get(name), "names", None)
            if names is not None:
                found["names"] = tuple(map(str, names))
        return found
    if isinstance(returned, Mapping) and IDS in returned:
        return returned
    return None


def _of_columns(columns: Mapping[str, Any], reference: str) -> ReadTexts:
    try:
        ids = whole_numbers(columns[IDS], IDS)
        if PAIRS in columns and any(map(torch.any, whole_numbers(columns[PAIRS], PAIRS))):
            raise DataError(
                f"{reference}: {PAIRS} are not all 0, and only {IDS} are given to the network: "
                "leave them out, or let the network compute them"
            )
        mask = whole_numbers(columns[MASK], MASK) if MASK in columns else None
        name = next((one for one in LABELS if one in columns), None)
        labels = None if name is None else columns[name]
        # Collators for language models give a label for each token.
        if labels is not None and _is_of_tokens(labels):
            labels = None
        return ReadTexts(ids, labels, tuple(columns.get("names", ())), mask)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise DataError(f"{reference}: {error}: {HOW_TO_RETURN}") from error


def _is_of_tokens(labels: Any) -> bool:
    first = labels[0] if len(labels) else 0
    return not isinstance(first, str) and bool(torch.as_tensor(first).dim())


def _read_returned(returned: object, reference: str) -> ReadTexts:
    columns = _columns(returned, reference)
    if columns is not None:
        return _of_columns(columns, reference)
    parts = returned.tensors if isinstance(returned, TensorDataset) else returned
    if isinstance(parts, Tensor | np.ndarray):
        parts = (parts,)
    if not isinstance(parts, tuple) or not 1 <= len(parts) <= 3:
        raise DataError(
            f"{reference} returned an object of type {type(returned).__name__}: {HOW_TO_RETURN}"
        )
    try:
        ids = torch.as_tensor(parts[0])
        labels = torch.as_tensor(parts[-1]) if len(parts) > 1 else None
        mask = torch.as_tensor(parts[1]) if len(parts) > 2 and parts[1] is not None else None
        return ReadTexts(
            ids, None if labels is None or labels.dim() == 2 else labels, mask=mask
        )
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise DataError(f"{reference}: {error}: {HOW_TO_RETURN}") from error


def _read_arrays(path: Path) -> ReadTexts:
    if not path.is_file():
        raise DataError(f"there is no file {path}: correct the path")
    names = list_arrays(path)

    def first(*choices: str) -> Tensor | None:
        found = next((one for one in choices if one in names), None)
        values = None if found is None else read_array(path, found)
        if values is not None and values.dtype.kind not in "iufb":
            raise DataError(f"{path}: {found} has no numbers: store the number of each class")
        return None if values is None else torch.from_numpy(values)

    ids = first(IDS, "x")
    if ids is None:
        raise DataError(f"{path}: has no array x or {IDS} with token ids")
    labels = first("y", *LABELS)
    if labels is not None and labels.dim() > 1:
        labels = None
    return ReadTexts(ids, labels, mask=first(MASK), owners=_owners_of_arrays(path, names))


def _owners_of_arrays(
    path: Path, names: Collection[str]
) -> tuple[()] | tuple[str, Sequence[str]]:
    for name in (OWNER, MEMBER):
        if name in names:
            cells = read_array(path, name)
            if cells.ndim != 1 or cells.dtype.kind not in "Ubiuf":
                raise DataError(f"{path}: {name!r} must have one cell for each text")
            return name, list(map(str, cells.tolist()))
    return ()


def _read_arrow(path: Path, label: str, text: str | None, settings: TokenSettings) -> ReadTexts:
    column = text or "text"
    wanted = {IDS, MASK, PAIRS, label, *LABELS, column, OWNER, MEMBER}
    found = read_arrow_folder(path, frozenset(wanted))
    label = next((one for one in (label, *LABELS) if one in found.columns), "")
    # Collators for language models give a label for each token.
    has_labels = label and not found.is_of_rows(label)
    labels = found.integers(label) if has_labels else None
    names = _class_names(path, label, labels)
    owner = next((one for one in (OWNER, MEMBER) if one in found.columns), None)
    owners = () if owner is None else (owner, found.cells(owner))
    if IDS not in found.columns:
        if settings.tokenizer is None or column not in found.columns:
            raise DataError(
                f"{path} has the columns {printable_excerpt(', '.join(found.names))}, and no "
                f"{IDS}: tokenise it before you save it, or name a column of texts and what "
                "tokenises them (--text COLUMN --tokenizer package.module:function). Save "
                "inputs that are neither texts nor images as an .npz with x and y"
            )
        encoded = _encode(found.texts(column), settings)
        return ReadTexts(encoded, labels, names, owners=owners)
    rows = {name: found.rows(name) for name in (IDS, MASK, PAIRS) if name in found.columns}
    given = {} if labels is None else {"labels": labels, "names": names}
    return replace(_of_columns(rows | given, str(path)), owners=owners)


def _class_names(path: Path, label: str, labels: Tensor | None) -> tuple[str, ...]:
    """Return the names of the classes that the folder states; () = none, or no labels."""
    if labels is None or not len(labels):
        return ()
    names = stated_class_names(read_features(path), label)
    return checked_class_names(path, names, int(labels.max()))


def _read_table(
    path: Path, label: str, text: str | None, settings: TokenSettings, header_lines: int
) -> ReadTexts:
    if not path.is_file() and not is_leaf(str(path)):
        raise DataError(f"there is no file {path}: correct the path")
    if path.suffix == ".jsonl":
        return _read_lines(path, label, text or "text", settings)
    table = read_text_table(path, header_lines)
    if text is None or settings.tokenizer is None:
        raise DataError(
            f"{path}: the network reads token ids, so name the column of the texts and what "
            "makes ids of them (--text COLUMN --tokenizer package.module:function)"
        )
    table.require(path, (text,))
    ids = _encode(table.columns[text].cells(), settings)
    name = next((one for one in (OWNER, MEMBER) if one in table.columns), None)
    owners = () if name is None else (name, table.columns[name].cells())
    if label not in table.columns:
        return ReadTexts(ids, None, owners=owners)
    labels = read_names_of_column(path, label, table.columns[label])
    return ReadTexts(ids, labels.numbers, labels.names, owners=owners)


def _read_lines(path: Path, label: str, text: str, settings: TokenSettings) -> ReadTexts:
    """Read a file with an object of JSON in each line."""
    if settings.tokenizer is None:
        raise DataError(
            f"{path}: name what makes token ids of its texts (--text COLUMN --tokenizer "
            "package.module:function)"
        )
    # Its lines are parsed one by one, and all of their values are kept.
    lines = enumerate(read_json_text(path, DataError).splitlines(), 1)
    numbered = [(number, line) for number, line in lines if line.strip()]
    if len(numbered) > MOST_LINES:
        raise DataError(
            f"{path} has more than {MOST_LINES:,} lines: give a part of them, such as the first"
        )
    try:
        rows = [
            parse_json(
                line,
                f"{path}, line {number}",
                DataError,
                make_object=_object_of,
                refuses_nan=True,
            )
            for number, line in numbered
        ]
        ids = _encode([_text_of(row[text]) for row in rows], settings)
        labels = [_label_cell(row.get(label)) for row in rows]
        name = next((one for one in (OWNER, MEMBER) if rows and one in rows[0]), None)
        owners = () if name is None else (name, [_owner_cell(row[name]) for row in rows])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: each line must be an object of JSON with {text!r} "
            f"({describe_failure(error)}): correct it, or name the texts by --text"
        ) from error
    if not any(labels):
        return ReadTexts(ids, None, owners=owners)
    if "" in labels:
        raise DataError(
            f"{path}: some lines have a {label!r} and others none: add what is missing, or "
            "leave it out of all lines for a language model"
        )
    texts = tuple({*labels})
    names = tuple(sorted(texts, key=name_order(texts)))
    places = {name: place for place, name in enumerate(names)}
    return ReadTexts(ids, [places[one] for one in labels], names, owners=owners)


def _object_of(pairs: Sequence[tuple[str, object]]) -> Mapping[str, object]:
    """Return an object of JSON; of a key that comes twice, nothing says which value counts."""
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a key comes twice")
    return row


def _text_of(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"it has {type(value).__name__} in place of a text")
    return value


def _label_cell(value: object) -> str:
    """Return a label of JSON as the cell of a table; null is none."""
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"it has {type(value).__name__} in place of a label")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a label is beyond all numbers")  # as 1e400 is
    return "" if value is None else str(value)


def _owner_cell(value: object) -> str:
    """Return an owner of JSON as the cell of a table; null is nobody."""
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"it has {type(value).__name__} in place of an owner")
    return "" if value is None else str(value)


def _encode(texts: Sequence[str], settings: TokenSettings) -> list[list[int]]:
    """Return the token ids of texts, by the user's function or tokenizer."""
    assert settings.tokenizer is not None
    tokenizer = import_function(settings.tokenizer, "tokenizer", DataError)
    try:
        if settings.arguments or not inspect.signature(tokenizer).parameters:
            given = bind_arguments(tokenizer, None, settings.arguments)
            tokenizer = tokenizer(*given.args, **given.kwargs)
        rows = [_ids_of(tokenizer(one)) for one in texts]
    except Exception as error:
        raise DataError(
            f"tokenizer: {settings.tokenizer} failed, {describe_failure(error)}: it takes a "
            "text and returns its token ids, or takes nothing and returns a tokenizer"
        ) from error
    return [row[: settings.length] for row in rows]


def _ids_of(encoded: Any) -> list[int]:
    found = encoded[IDS] if isinstance(encoded, Mapping) else getattr(encoded, "ids", encoded)
    return [index(one) for one in found]
