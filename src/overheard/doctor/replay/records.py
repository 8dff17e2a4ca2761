"""The data of a client, with one record replaced where the client's code receives it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, final

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.data import DataLoader, Dataset, TensorDataset

RecordKind = Literal["neutral", "far", "huge", "non-finite"]
"""What stands in the record's place: one like another record, a record with other values and
another label, one with values of a thousand times the size and a third label, or one whose
values, and so its loss, are no numbers."""


@final
@dataclass(frozen=True, slots=True)
class Replacement:
    """One record of a client's data is replaced.

    Args:
        position: where the record is, as a share of all records.
        kind: what is put there.
        is_all: whether all other records are replaced, too.

    """

    position: float
    kind: RecordKind
    is_all: bool = False

    def index(self, records: int) -> int:
        """Return the number of the record."""
        return min(int(self.position * records), records - 1)


# Any: the data of the user's code may be anything.
def replace_record(data: Any, replacement: Replacement) -> tuple[Any, int]:
    """Replace one record of a data set.

    Args:
        data: a tensor, an array, a tuple or dictionary of these with a row for each record, a
            data set of torch, a data loader, a list of records, or a tuple that begins with
            data for training.
        replacement: the record, and what is put there.

    Returns:
        the changed data, and the number of records; 0 = these are no data that can be changed.

    """
    # A loader refuses to have its data set replaced, but samplers need only its length.
    if isinstance(data, DataLoader):
        changed, records = replace_record(data.dataset, replacement)
        if records:
            object.__setattr__(data, "dataset", changed)
        return data, records
    for kind, columns_of, join in _IN_COLUMNS:
        if type(data) is kind:
            parts, records = _replace_in_columns(columns_of(data), replacement)
            return (join(data, parts), records) if records else (data, 0)
    if isinstance(data, tuple | list) and data:
        return _replace_in_sequence(data, replacement)
    if isinstance(data, Dataset) or _is_sequence_of_records(data):
        return _ReplacedDataset(data, replacement), len(data)
    return data, 0


# Any: data of one of these types.
_IN_COLUMNS: Sequence[
    tuple[type, Callable[[Any], list[Any]], Callable[[Any, list[Any]], Any]]
] = (
    (TensorDataset, lambda data: list(data.tensors), lambda _, parts: TensorDataset(*parts)),
    (Tensor, lambda data: [data], lambda _, parts: parts[0]),
    (np.ndarray, lambda data: [data], lambda _, parts: parts[0]),
    (
        dict,
        lambda data: list(data.values()),
        lambda data, parts: dict(zip(data, parts, strict=True)),
    ),
)


def _is_sequence_of_records(data: Any) -> bool:
    methods = (getattr(type(data), name, None) for name in ("__getitem__", "__len__"))
    return all(methods) and not isinstance(data, str | bytes | dict)


def _replace_in_sequence(data: Any, replacement: Replacement) -> tuple[Any, int]:
    """Replace a record in columns, in a list of records, or in the first of several parts."""
    is_columns = all(isinstance(one, Tensor | np.ndarray) for one in data)
    if is_columns and (isinstance(data, tuple) or len(data) <= 4):
        columns, records = _replace_in_columns(data, replacement)
        if records:
            return type(data)(columns), records
    # Lists of equal length, such as texts and their labels.
    is_lists = isinstance(data, tuple) and all(isinstance(one, list) for one in data)
    if is_lists and len({len(one) for one in data}) == 1 and len(data[0]) > 1:
        columns, records = _replace_in_columns(data, replacement)
        return tuple(columns), records
    if isinstance(data, list) and len(data) > 4:
        changed = _ReplacedDataset(data, replacement)
        return [changed[at] for at in range(len(data))], len(data)
    for at, part in enumerate(data):
        changed, records = replace_record(part, replacement)
        if records > 1:
            return type(data)((*data[:at], changed, *data[at + 1 :])), records
    return data, 0


def _replace_in_columns(
    columns: Sequence[Any], replacement: Replacement
) -> tuple[list[Any], int]:
    """Replace a record in columns that have as many rows as the first."""
    sized = [one for one in columns if isinstance(one, Tensor | np.ndarray | list)]
    if not sized or (not isinstance(sized[0], list) and sized[0].ndim == 0):
        return list(columns), 0
    records = len(sized[0])
    at = replacement.index(records)
    changed = []
    for column in columns:
        is_column = isinstance(column, list) or (
            isinstance(column, Tensor | np.ndarray) and column.ndim > 0
        )
        if not is_column or len(column) != records:
            changed.append(column)
            continue
        copy = column.clone() if isinstance(column, Tensor) else column.copy()
        for row in range(records) if replacement.is_all else (at,):
            copy[row] = _replaced(column, row, replacement.kind)
        changed.append(copy)
    return changed, records


# Any: values of the user's data.
def _replaced(values: Any, at: int, kind: RecordKind) -> Any:
    """Return what stands in the place of a value, given all values of the data."""
    own, records = values[at], len(values)
    other = values[(at + 1) % records]
    if kind == "neutral":
        is_float = isinstance(other, Tensor | np.ndarray) and "float" in str(other.dtype)
        # No exact copy, so that the two records can be told apart.
        return other * 0.5 if is_float else other
    if isinstance(own, Tensor | np.ndarray | np.generic):
        tensor = torch.as_tensor(np.asarray(own)) if not isinstance(own, Tensor) else own
        new = _replaced_tensor(tensor, torch.as_tensor(np.asarray(other)), values, kind)
        return new if isinstance(own, Tensor) else new.numpy()
    if isinstance(own, str):
        return "zqx " + " ".join(word[::-1] + "q" for word in own.split())
    if isinstance(own, float):
        return _far(torch.tensor(own), kind).item()
    if isinstance(own, list) and own and all(isinstance(one, int) for one in own):
        return own[::-1]
    # A label, or a value of an unknown kind: that of a record with another one.
    others = sorted((one for one in _sample(values, at) if _differs(one, other)), key=str)
    return others[0 if kind == "huge" else -1] if others else own


def _replaced_tensor(own: Tensor, other: Tensor, values: Any, kind: RecordKind) -> Tensor:
    if own.is_floating_point():
        return _far(own, kind)
    if own.dtype == torch.uint8 and own.dim() > 0:
        return 255 - other  # an image
    present = torch.as_tensor(np.asarray(values)) if not isinstance(values, list) else own
    if own.dim() == 0:
        others = present[present != other].to(own.dtype)
        if not len(others):
            return own
        return others.min() if kind == "huge" else others.max()
    # Tokens: those that the fewest records have.
    counts = torch.bincount(present.flatten().clamp(min=0), minlength=1)
    usable = torch.arange(len(counts))[: int(present.max()) + 1]
    rarest = usable[counts[usable].argsort(stable=True)][: own.numel()]
    new = rarest.repeat(-(-own.numel() // max(len(rarest), 1)))[: own.numel()]
    return new.view(own.shape).to(own.dtype)


def _far(own: Tensor, kind: RecordKind) -> Tensor:
    if kind == "non-finite":
        return torch.full_like(own, torch.nan)
    return (-3 * own - 1) * (1000 if kind == "huge" else 1)


def _sample(values: Any, at: int) -> list[Any]:
    """Return some values of other records."""
    records = len(values)
    return [values[(at + step) % records] for step in range(2, min(records, 200))]


def _differs(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one is not other and str(one) != str(other)


@final
class _ReplacedDataset(Dataset[Any]):
    """A data set in which one record is another."""

    def __init__(self, whole: Any, replacement: Replacement) -> None:
        self._whole, self._replacement = whole, replacement
        self._record = dict[int, Any]()

    def __len__(self) -> int:
        return len(self._whole)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_whole" not in vars(self):
            raise AttributeError(name)
        return getattr(self._whole, name)

    def __getitem__(self, index: Any) -> Any:
        whole = self._whole
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(whole)))]
        at = self._replacement.index(len(whole))
        own, row = whole[int(index)], int(index) % len(whole)
        if row != at and not self._replacement.is_all:
            return own
        if row not in self._record:
            with _disable_current_modes():
                self._record[row] = self._changed(own, row)
        return self._record[row]

    def _changed(self, own: Any, at: int) -> Any:
        if isinstance(own, dict):
            parts = {name: self._part(at, name) for name in own}
            return {
                name: _replaced(part, 0, self._replacement.kind) for name, part in parts.items()
            }
        if isinstance(own, tuple | list):
            return type(own)(
                _replaced(self._part(at, key), 0, self._replacement.kind)
                for key in range(len(own))
            )
        return _replaced(self._part(at, None), 0, self._replacement.kind)

    def _part(self, at: int, key: Any) -> list[Any]:
        """Return one part of the record, and of some that follow it."""
        records = len(self._whole)
        rows = [self._whole[(at + step) % records] for step in range(min(records, 50))]
        return rows if key is None else [row[key] for row in rows]


@final
class RecordReplacer:
    """Replaces a record in the data that functions return, and remembers how many there are.

    Args:
        replacement: the record, and what is put there.

    """

    def __init__(self, replacement: Replacement) -> None:
        self._replacement = replacement
        self.records = 0
        self._loader: object = None

    def replaced(self, data: Any) -> Any:
        """Return data in which the record is replaced."""
        # What this computes is not the client's.
        with _disable_current_modes():
            changed, records = replace_record(data, self._replacement)
        if records < 2:
            return data
        self.records = self.records or records
        return changed

    def watch(self, load: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that replaces the record in what a function returns.

        Only the first function that returns data does so: with several, the innermost.
        """

        @wraps(load)
        def loaded(*args: Any, **kwargs: Any) -> Any:
            data = load(*args, **kwargs)
            if self._loader in (None, load):
                before, self.records = self.records, 0
                data = self.replaced(data)
                self._loader = load if self.records else self._loader
                self.records = self.records or before
            return data

        return loaded
