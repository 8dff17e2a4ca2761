"""Texts as token ids of a network's own vocabulary."""

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor
from torch.utils.data import TensorDataset

from overheard.archive.excerpt import printable_excerpt
from overheard.core.custom_code.builder_arguments import Argument, bind_arguments
from overheard.core.custom_code.failure import describe_failure
from overheard.core.custom_code.reference import REFERENCE, import_function
from overheard.core.errors import DataError
from overheard.core.examples import Examples, without_classes
from overheard.core.seeds import Seed
from overheard.core.settings import NotNegative, Positive, Settings
from overheard.core.task import Task
from overheard.data.dataset import DataReading, Dataset
from overheard.data.holdout import hold_out_fifth
from overheard.data.reading.arrays import checked_names, list_arrays, read_array
from overheard.data.reading.arrow_folder import read_arrow_folder
from overheard.data.reading.custom_arrays import MAX_CLASSES
from overheard.data.reading.formats.leaf import is_leaf
from overheard.data.reading.table_names import read_names_of_column
from overheard.data.reading.text_table import read_text_table
from overheard.disk.limits import TABLE, refuse_large
from overheard.disk.reading import parse_json, read_small_file

IDS, MASK, PAIRS = "input_ids", "attention_mask", "token_type_ids"
"""How tokenizers of Hugging Face name what they return."""

LABELS = ("label", "labels")
"""Usual names of the column of labels."""

ID_BYTES = 8

MAX_TOKENS = 2**20
"""The most tokens of a vocabulary: as vectors of 256 numbers, they take 1 GiB. Published
tokenizers have up to 901,629 (XLM-V)."""

NEXT_TOKEN = ("next token",)
"""The name of the output of a language model, the mean loss of a text."""

ARROW_STATE = "state.json"
"""The file by which a folder is known that Hugging Face's datasets saved."""

NO_ROWS = "{} must be whole numbers below 2^63, a row for each text: encode the texts again"

HOW_TO_RETURN = (
    "return token ids and labels as a tuple, `return ids, labels`, token ids alone for a "
    "language model, or a tokenised datasets.Dataset with the column input_ids"
)


@final
@dataclass(frozen=True, slots=True)
class TokenSettings(Settings):
    """How texts become token ids.

    Args:
        vocabulary: number of the network's tokens; None = one more than the largest id.
        padding: the token after the end of a text; None = that where the attention mask is 0,
            or else 0.
        tokenizer: "package.module:function" that makes token ids of a text, or of a list of
            texts; None = the data have token ids.
        length: the most tokens of a text that `tokenizer` makes.
        arguments: what the function takes to make a tokenizer; () = nothing.

    """

    vocabulary: Positive | None = None
    padding: NotNegative | None = None
    tokenizer: str | None = None
    length: Positive = 40
    arguments: tuple[Argument, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """Token ids of texts, and their labels.

    Args:
        ids: of each text; texts may differ in length.
        labels: the class of each text; None = a language model predicts the texts themselves.
        names: of the classes; () = they have numbers.
        mask: 1 where a token is read, for each text; None = all that is no padding.

    """

    ids: Sequence[Sequence[int] | Tensor] | Tensor
    labels: Sequence[int] | Tensor | None
    names: tuple[str, ...] = ()
    mask: Sequence[Sequence[int] | Tensor] | Tensor | None = None


def is_arrow_folder(reference: str) -> bool:
    """Return whether a path is a folder that `datasets.Dataset.save_to_disk` wrote."""
    return (Path(reference) / ARROW_STATE).is_file()


def load_tokens(
    reference: str,
    settings: TokenSettings,
    *,
    label: str = "label",
    text: str | None = None,
    header_lines: int = 1,
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
        seed: chooses the fifth.

    Raises:
        DataError: if the data do not exist or cannot be used.

    """
    path = Path(reference)
    if path.suffix == ".npz":
        read = _read_arrays(path)
    elif is_arrow_folder(reference):
        read = _read_arrow(path, label, text, settings)
    elif REFERENCE.fullmatch(reference):
        function = import_function(reference, "data", DataError)
        try:
            returned = function()
        except Exception as error:
            raise DataError(f"data: {reference} failed, {describe_failure(error)}") from error
        if isinstance(returned, Dataset):
            return returned
        read = _read_returned(returned, reference)
    else:
        read = _read_table(path, label, text, settings, header_lines)
    return _dataset(reference, read, settings, seed)


def tokens_of_returned(returned: object, reference: str, seed: Seed) -> Dataset | None:
    """Return the data set of a tokenised `datasets.Dataset`, or of a mapping with `input_ids`.

    None = it is neither. The vocabulary is as large as the ids say.
    """
    columns = _columns(returned, reference)
    if columns is None:
        return None
    return _dataset(reference, _of_columns(columns, reference), TokenSettings(), seed)


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


def _of_columns(columns: Mapping[str, Any], reference: str) -> _Read:
    try:
        ids = _texts(columns[IDS], IDS)
        if PAIRS in columns and any(map(torch.any, _texts(columns[PAIRS], PAIRS))):
            raise DataError(
                f"{reference}: {PAIRS} are not all 0, and only {IDS} are given to the network: "
                "leave them out, or let the network compute them"
            )
        mask = _texts(columns[MASK], MASK) if MASK in columns else None
        name = next((one for one in LABELS if one in columns), None)
        labels = None if name is None else columns[name]
        # Collators for language models give a label for each token.
        if labels is not None and _is_of_tokens(labels):
            labels = None
        return _Read(ids, labels, tuple(columns.get("names", ())), mask)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise DataError(f"{reference}: {error}: {HOW_TO_RETURN}") from error


def _is_of_tokens(labels: Any) -> bool:
    first = labels[0] if len(labels) else 0
    return not isinstance(first, str) and bool(torch.as_tensor(first).dim())


def _read_returned(returned: object, reference: str) -> _Read:
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
        return _Read(ids, None if labels is None or labels.dim() == 2 else labels, mask=mask)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise DataError(f"{reference}: {error}: {HOW_TO_RETURN}") from error


def _read_arrays(path: Path) -> _Read:
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
    return _Read(ids, None if labels is None or labels.dim() > 1 else labels, mask=first(MASK))


def _read_arrow(path: Path, label: str, text: str | None, settings: TokenSettings) -> _Read:
    column = text or "text"
    found = read_arrow_folder(path, frozenset({IDS, MASK, PAIRS, label, *LABELS, column}))
    label = next((one for one in (label, *LABELS) if one in found.columns), "")
    names = _names_in_info(path, label)
    # Collators for language models give a label for each token.
    has_labels = label and not found.is_of_rows(label)
    labels = found.integers(label) if has_labels else None
    if IDS not in found.columns:
        if settings.tokenizer is None or column not in found.columns:
            raise DataError(
                f"{path} has the columns {printable_excerpt(', '.join(found.names))}, and no "
                f"{IDS}: tokenise it before you save it, or name a column of texts and what "
                "tokenises them (--text COLUMN --tokenizer package.module:function). Save "
                "inputs that are no texts as an .npz with x and y"
            )
        return _Read(_encode(found.texts(column), settings), labels, names)
    rows = {name: found.rows(name) for name in (IDS, MASK, PAIRS) if name in found.columns}
    given = {} if labels is None else {"labels": labels, "names": names}
    return _of_columns(rows | given, str(path))


def _names_in_info(path: Path, label: str) -> tuple[str, ...]:
    """Return the names of the classes that the folder states; () = none."""
    file = path / "dataset_info.json"
    if not file.is_file():
        return ()
    try:
        content = read_small_file(file, DataError)
        feature = parse_json(content, str(file), DataError)["features"][label]
        return tuple(str(one) for one in feature.get("names", ()))
    except (DataError, KeyError, TypeError, AttributeError):
        return ()


def _read_table(
    path: Path, label: str, text: str | None, settings: TokenSettings, header_lines: int
) -> _Read:
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
    if label not in table.columns:
        return _Read(ids, None)
    labels = read_names_of_column(path, label, table.columns[label])
    return _Read(ids, labels.numbers, labels.names)


def _read_lines(path: Path, label: str, text: str, settings: TokenSettings) -> _Read:
    """Read a file with an object of JSON in each line."""
    if settings.tokenizer is None:
        raise DataError(
            f"{path}: name what makes token ids of its texts (--text COLUMN --tokenizer "
            "package.module:function)"
        )
    content = read_small_file(path, DataError)
    try:
        rows = [
            parse_json(line, f"{path}, line {number}", DataError)
            for number, line in enumerate(content.splitlines(), 1)
            if line.strip()
        ]
        ids = _encode([str(row[text]) for row in rows], settings)
        labels = [row.get(label) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: each line must be an object of JSON with {text!r} "
            f"({describe_failure(error)}): correct it, or name the texts by --text"
        ) from error
    if None in labels:
        return _Read(ids, None)
    names = tuple(sorted(set(map(str, labels))))
    places = {name: place for place, name in enumerate(names)}
    return _Read(ids, [places[str(one)] for one in labels], names)


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


def _dataset(reference: str, read: _Read, settings: TokenSettings, seed: Seed) -> Dataset:
    """Return the data set of token ids; a fifth is held out."""
    try:
        ids, padding = _padded(read, settings.padding)
        vocabulary = _vocabulary(ids, settings.vocabulary)
        if read.labels is None:
            labels = torch.zeros(len(ids), dtype=torch.int64)
            examples = without_classes(ids, torch.zeros(len(ids), 1))
            task = Task((ids.shape[1],), NEXT_TOKEN, vocabulary, "language_modeling")
        else:
            labels, names = _classes(reference, read.labels, read.names)
            examples, task = Examples(ids, labels), Task((ids.shape[1],), names, vocabulary)
        test = hold_out_fifth(labels, None, seed, Path(reference))
        notes = () if padding is None else (f"The padding of the texts is token {padding}.",)
        return Dataset(
            examples.take(~test), examples.take(test), task, reading=DataReading(notes=notes)
        )
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise DataError(f"{reference}: {error}") from error


def _padded(
    read: _Read, padding: int | None
) -> tuple[Int64[Tensor, "examples tokens"], int | None]:
    """Return token ids in rows of one length, and the padding if it is known."""
    texts = _texts(read.ids, IDS)
    if read.mask is None:
        return _rows(texts, padding or 0), padding
    mask = _texts(read.mask, MASK)
    if list(map(len, mask)) != list(map(len, texts)):
        raise ValueError(
            f"{MASK} must have a number for each token of {IDS}, and their lengths differ: "
            "tokenise the texts again"
        )
    if padding is None:
        padding = _masked_token(texts, mask)
    ids = _rows(texts, padding or 0)
    ids[_rows(mask, 0) == 0] = padding or 0
    return ids, padding


def _vocabulary(ids: Int64[Tensor, "examples tokens"], stated: int | None) -> int:
    """Return the number of tokens, which token ids must be below."""
    if not len(ids):
        raise ValueError("there are no texts: give one or more")
    least, most = int(ids.min()), int(ids.max())
    count = most + 1 if stated is None else stated
    if count > MAX_TOKENS:
        raise ValueError(
            f"the vocabulary has {count} tokens, and may have {MAX_TOKENS}, whose embedding "
            "fits memory: encode the texts as the app does"
        )
    if least < 0 or most >= count:
        raise ValueError(
            f"token ids lie from {least} to {most}, and the network has {count} tokens, from "
            "0: encode the texts as the app does"
        )
    return count


def _classes(
    reference: str, given: Sequence[int] | Tensor, names: tuple[str, ...]
) -> tuple[Int64[Tensor, " examples"], tuple[str, ...]]:
    """Return the class of each text, and the names of all classes."""
    labels = torch.as_tensor(_without_texts(given))
    if labels.is_floating_point() or labels.dim() != 1 or int(labels.min()) < 0:
        raise ValueError("labels of texts must be whole numbers from 0, one for each")
    count = max(2, int(labels.max()) + 1)
    if max(count, len(names)) > MAX_CLASSES:
        raise ValueError(
            f"the labels have {max(count, len(names))} classes, but must have 2 to "
            f"{MAX_CLASSES}: number them from 0"
        )
    checked = checked_names(reference, "names of classes", names)
    return labels.long(), checked if len(names) >= count else tuple(map(str, range(count)))


def _without_texts(labels: Any) -> Any:
    is_list = not isinstance(labels, Tensor | np.ndarray)
    if is_list and any(one is None or isinstance(one, str) for one in labels):
        raise ValueError(
            "labels of texts must be whole numbers from 0, and some are texts or empty: number "
            "the classes, as class_encode_column of datasets does"
        )
    return labels


def _texts(values: Any, name: str) -> Sequence[Int64[Tensor, " tokens"]]:
    """Return the whole numbers of each text, of any lengths."""
    if isinstance(values, Tensor | np.ndarray) and values.ndim == 2:
        return tuple(_whole(values, name))
    rows = [_whole(one, name) for one in values]
    if any(row.dim() != 1 for row in rows):
        raise ValueError(NO_ROWS.format(name))
    return rows


def _whole(values: Any, name: str) -> Int64[Tensor, "..."]:
    try:
        found = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(NO_ROWS.format(name)) from error
    # A list without numbers is one of floats for PyTorch.
    if found.numel() and (found.is_floating_point() or found.is_complex()):
        raise ValueError(NO_ROWS.format(name))
    return found.long()


def _rows(
    values: Sequence[Int64[Tensor, " tokens"]], padding: int
) -> Int64[Tensor, "examples tokens"]:
    """Return rows of one length, with padding at their ends."""
    length = max(1, max(map(len, values), default=1))
    refuse_large("the token ids", ID_BYTES * length * len(values), DataError, part=TABLE)
    rows = torch.full((len(values), length), padding)
    for row, ids in zip(rows, values, strict=True):
        row[: len(ids)] = ids
    return rows


def _masked_token(
    texts: Sequence[Int64[Tensor, " tokens"]], masks: Sequence[Int64[Tensor, " tokens"]]
) -> int | None:
    """Return the token where the attention mask is 0; None = it is 1 everywhere."""
    for ids, mask in zip(texts, masks, strict=True):
        masked = ids[mask == 0]
        if len(masked):
            return int(masked[0])
    return None
