"""A data set of texts that were read as token ids, with the candidate records among them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor
from torch.nn.functional import pad

from overheard.core.custom_code.builder_arguments import Argument
from overheard.core.errors import DataError
from overheard.core.examples import Examples, without_classes
from overheard.core.seeds import Seed
from overheard.core.settings import NotNegative, Positive, Settings
from overheard.core.task import Task
from overheard.data.dataset import DataReading, Dataset
from overheard.data.holdout import hold_out_fifth
from overheard.data.listed_records import ListedRecords, list_records, members_of_cells
from overheard.data.reading.arrays import checked_names
from overheard.data.reading.custom_arrays import MAX_CLASSES
from overheard.disk.limits import TABLE, refuse_large

IDS, MASK = "input_ids", "attention_mask"
"""How tokenizers of Hugging Face name what they return."""

ID_BYTES = 8

MAX_TOKENS = 2**20
"""The most tokens of a vocabulary: as vectors of 256 numbers, they take 1 GiB. Published
tokenizers have up to 901,629 (XLM-V)."""

NEXT_TOKEN = ("next token",)
"""The name of the output of a language model, the mean loss of a text."""

NO_ROWS = "{} must be whole numbers below 2^63, a row for each text: encode the texts again"


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
class ReadTexts:
    """Token ids of texts, and their labels.

    Args:
        ids: of each text; texts may differ in length.
        labels: the class of each text; None = a language model predicts the texts themselves.
        names: of the classes; () = they have numbers.
        mask: 1 where a token is read, for each text; None = all that is no padding.
        owners: a column that says who trained on each text, by name, as `data.listed_records`
            reads it; () = there is none.

    """

    ids: Sequence[Sequence[int] | Tensor] | Tensor
    labels: Sequence[int] | Tensor | None
    names: tuple[str, ...] = ()
    mask: Sequence[Sequence[int] | Tensor] | Tensor | None = None
    owners: tuple[()] | tuple[str, Sequence[str]] = ()


def dataset_of_texts(
    reference: str,
    read: ReadTexts,
    settings: TokenSettings,
    seed: Seed,
    listed: tuple[str, ReadTexts] | None = None,
) -> Dataset:
    """Return the data set of token ids, of which a fifth of each label is held out.

    Args:
        reference: where the texts come from, for messages.
        read: the texts.
        settings: how they became token ids.
        seed: chooses the fifth.
        listed: the file of candidate records, and its texts; None = no list.

    Raises:
        DataError: if the texts or the candidate records cannot be used.

    """
    try:
        ids, padding = _padded(read, settings.padding)
        candidates = None if listed is None else _ids_of_listed(*listed, padding, settings)
        if candidates is not None:
            length = max(ids.shape[1], candidates.shape[1])
            ids, candidates = (
                pad(one, (0, length - one.shape[1]), value=padding or 0)
                for one in (ids, candidates)
            )
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
            examples.take(~test),
            examples.take(test),
            task,
            reading=DataReading(notes=notes),
            listed=None
            if listed is None or candidates is None
            else _listed(*listed, candidates, task),
        )
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise DataError(f"{reference}: {error}") from error


def _ids_of_listed(
    reference: str, read: ReadTexts, padding: int | None, settings: TokenSettings
) -> Int64[Tensor, "records tokens"]:
    """Return the token ids of candidate records, with the padding of the data."""
    try:
        ids, _ = _padded(read, padding)
        _vocabulary(ids, settings.vocabulary)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise DataError(f"{reference}: {error}") from error
    return ids


def _listed(
    reference: str, read: ReadTexts, ids: Int64[Tensor, "records tokens"], task: Task
) -> ListedRecords:
    """Return candidate records, with the classes of the data by their names."""
    path = Path(reference)
    name, cells = read.owners or ("", ())
    if len(cells) != len(ids):
        raise DataError(f"{path}: {name!r} must have one cell for each of {len(ids)} texts")
    records = without_classes(ids, torch.zeros(len(ids), 1))
    if task.has_classes:
        if read.labels is None:
            raise DataError(f"{path}: its texts need labels, as those of the data have")
        # Numbers without names are those of the classes of the data.
        labels, names = _classes(reference, read.labels, read.names or task.class_names)
        used = [names[one] for one in torch.unique(labels).tolist()]
        unknown = [one for one in used if one not in task.class_names]
        if unknown:
            raise DataError(
                f"{path}: holds the label {unknown[0]!r}, which is no class of the data: "
                "remove or correct it"
            )
        places = {name: place for place, name in enumerate(task.class_names)}
        records = Examples(ids, torch.tensor([places.get(one, 0) for one in names])[labels])
    return list_records(path, records, members_of_cells(path, name, cells))


def _padded(
    read: ReadTexts, padding: int | None
) -> tuple[Int64[Tensor, "examples tokens"], int | None]:
    """Return token ids in rows of one length, and the padding if it is known."""
    texts = whole_numbers(read.ids, IDS)
    if read.mask is None:
        return _rows(texts, padding or 0), padding
    mask = whole_numbers(read.mask, MASK)
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


def whole_numbers(values: Any, name: str) -> Sequence[Int64[Tensor, " tokens"]]:
    """Return the whole numbers of each text, of any lengths.

    Raises:
        ValueError: if a text has other values.

    """
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
