"""A loader of the user's own arrays in an `.npz` file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int64, Shaped
from torch import Tensor

from overheard.core.errors import DataError
from overheard.core.examples import Examples, without_classes
from overheard.core.seeds import Seed
from overheard.core.task import Task, TaskKind
from overheard.data.dataset import DataReading, Dataset
from overheard.data.holdout import hold_out_fifth
from overheard.data.listed_records import (
    MEMBER,
    OWNER,
    ListedRecords,
    list_records,
    members_of_cells,
)
from overheard.data.reading.array_labels import (
    class_cells,
    kind_of_array,
    no_classes,
    number_rows,
)
from overheard.data.reading.arrays import (
    ArrayFile,
    checked_names,
    checked_numbers,
    names_of_array,
)
from overheard.data.reading.float_labels import output_names
from overheard.data.reading.images import LabelledImages, image_dataset
from overheard.data.reading.scales import SCALE_WORDS, Scale, rescale
from overheard.data.reading.times import rank_times

ARRAY_NAMES = ("user", "times", "records")
"""Names of the arrays, without the suffix for the part."""

Arrays = Mapping[str, Shaped[np.ndarray, "..."]]
"""Arrays by name, as those of an `.npz` file."""

NUMBERS_OR_NAMES = "iuU"

NUMBERS_OR_DATES = "iufUM"
"""Kinds of arrays, by NumPy's letters."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of examples; None = unknown.

    Args:
        users: the number of the user of each example.
        user_names: the name of each user.
        times: the rank of each example's time.
        records: the number of the record from which each example was cut.

    """

    users: Int64[Tensor, " examples"] | None = None
    user_names: tuple[str, ...] = ()
    times: Int64[Tensor, " examples"] | None = None
    records: Int64[Tensor, " examples"] | None = None

    def take(self, is_selected: Bool[Tensor, " examples"]) -> "Provenance":
        """Return the provenance of the marked examples; numbers do not change."""
        return Provenance(
            None if self.users is None else self.users[is_selected],
            self.user_names,
            None if self.times is None else self.times[is_selected],
            None if self.records is None else self.records[is_selected],
        )

    def hold_out_fifth(
        self, labels: Int[Tensor, " examples"], seed: Seed, path: Path
    ) -> Bool[Tensor, " examples"]:
        """Mark all examples of a random fifth of the records, see `holdout.hold_out_fifth`.

        The label and the user of a record are those of its first example.

        Raises:
            DataError: if there are too few records to hold any out.

        """
        if self.records is None:
            return hold_out_fifth(labels, self.users, seed, path)
        first = torch.from_numpy(np.unique(self.records.numpy(), return_index=True)[1])
        users = None if self.users is None else self.users[first]
        return hold_out_fifth(labels[first], users, seed, path)[self.records]


def read_provenance(path: Path, part: str, arrays: Arrays, examples: int) -> Provenance:
    """Read the provenance of the examples in a file.

    Args:
        path: the file.
        part: "_train", or "" if the file has one part.
        arrays: the arrays in the file.
        examples: the number of examples.

    Raises:
        DataError: if an array has another length or kind, or belongs to another part.

    """
    array_names = frozenset(arrays)
    for name in ARRAY_NAMES:
        stray = ({name, f"{name}_train"} - {f"{name}{part}"}) & array_names
        if stray:
            raise DataError(
                f"{path}: '{min(stray)}' belongs to no inputs, which are 'x{part}': name it "
                f"'{name}{part}'"
            )
    users, times, records = None, None, None
    user_names: tuple[str, ...] = ()
    if f"user{part}" in array_names:
        cells = _checked_column(path, f"user{part}", arrays, examples, NUMBERS_OR_NAMES)
        users = _enumerate(cells)
        names = [str(cell) for cell in np.unique(cells).tolist()]
        user_names = checked_names(path, f"user{part}", names)
    if f"times{part}" in array_names:
        times = _read_times(path, f"times{part}", arrays, examples)
    if f"records{part}" in array_names:
        records = _enumerate(
            _checked_column(path, f"records{part}", arrays, examples, NUMBERS_OR_NAMES)
        )
    return Provenance(users, user_names, times, records)


def _read_times(
    path: Path, name: str, arrays: Arrays, examples: int
) -> Int64[Tensor, " examples"]:
    import pandas as pd

    cells = _checked_column(path, name, arrays, examples, NUMBERS_OR_DATES)
    try:
        time_cells = pd.Series(cells)
    except pd.errors.OutOfBoundsDatetime as error:
        raise DataError(
            f"{path}: '{name}' has a date out of range: use numbers instead"
        ) from error
    return rank_times(path, name, time_cells)


def _checked_column(
    path: Path, name: str, arrays: Arrays, examples: int, kinds: str
) -> Shaped[np.ndarray, " examples"]:
    cells = arrays[name]
    if cells.shape != (examples,) or cells.dtype.kind not in kinds:
        expected = "whole numbers or names" if kinds == NUMBERS_OR_NAMES else "numbers or dates"
        raise DataError(
            f"{path}: '{name}' must be {examples} {expected}, one per example, but is "
            f"{cells.dtype} of shape {cells.shape}"
        )
    return cells


def _enumerate(cells: Shaped[np.ndarray, " examples"]) -> Int64[Tensor, " examples"]:
    """Return the rank of each cell among the different ones."""
    return torch.from_numpy(np.unique(cells, return_inverse=True)[1].astype(np.int64))


CHANNELS = (1, 3, 4)
"""Usual numbers of channels: gray, colors, and colors with transparency."""

NO_CLASSES = ("", "-")
"""Names in place of those of classes, until the outputs of another task are named."""

MAX_CLASSES = 1000
"""The most classes; a column with more values is a number or a name, not a class."""


def load_arrays(
    path: Path,
    seed: Seed,
    scale: Scale = "standardised",
    task: TaskKind = "classification",
    listed: Path | None = None,
    arrays: Arrays | None = None,
) -> Dataset:
    """Load the data set in the arrays `x_<part>` and `y_<part>`, or `x`, `y`.

    Inputs are 8-bit images (examples x height x width, then channels if there are any), images
    of real numbers (channels first) or columns of numbers. If only the other of these two axes
    has 1, 3 or 4 entries, the channels are there, and a note says so. Inputs are put on the
    scale, with the statistics of the training part, per channel or per column. Labels are
    numbers from 0, or names; if no label is 0, the classes are the numbers that occur. A row of
    0 and 1 for each example says which labels apply. Other real numbers, or all numbers with
    the task "regression", are to be predicted, and are taken as they are.

    Optional arrays, without the suffix `"_train"` if there is no test part:

    - `class_names`: names of labels that are numbers.
    - `"user_train"`: the user of each training example.
    - `"times_train"`: the time of each, as numbers or ISO dates.
    - `"records_train"`: the number or name of the record from which each was cut.

    Candidate records are the arrays `x`, `y`, and `owner` or `member` of another file, see
    `data.listed_records`. They are put on the same scale.

    Without a test part, a fifth of each label is held out, with users a fifth of each user's
    examples; with records, a fifth of the records, each with all its examples.

    Args:
        path: the file, or what the arrays are called in messages.
        seed: chooses the fifth.
        scale: how numbers become inputs.
        task: "regression" makes whole numbers to predict of labels.
        listed: an `.npz` file with candidate records; None = no list.
        arrays: the arrays; None = those of the file.

    Raises:
        DataError: if the arrays have another form.

    """
    arrays = ArrayFile(path) if arrays is None else arrays
    names = frozenset(arrays)
    part = "" if "x" in names and "x_train" not in names else "_train"
    inputs, labels = arrays[f"x{part}"], arrays[f"y{part}"]
    _check_inputs(path, f"x{part}", inputs, labels)
    kind = kind_of_array(path, f"y{part}", labels, task)
    rows = None if kind == "classification" else number_rows(path, f"y{part}", labels)
    classes = _find_outputs(path, f"y{part}", labels, arrays, kind)
    numbers = classes.numbers(path, f"y{part}", labels)
    provenance = read_provenance(path, part, arrays, len(inputs))
    if part and "x_test" in names:
        test_inputs, test_labels = arrays["x_test"], arrays["y_test"]
        _check_inputs(path, "x_test", test_inputs, test_labels)
        if test_inputs.shape[1:] != inputs.shape[1:] or test_inputs.dtype != inputs.dtype:
            raise DataError(f"{path}: 'x_train' and 'x_test' must have one type and shape")
        test_numbers = classes.numbers(path, "y_test", test_labels)
        test_rows = None if rows is None else number_rows(path, "y_test", test_labels)
        _check_rows(path, rows, test_rows)
    else:
        held_out = provenance.hold_out_fifth(torch.from_numpy(numbers), seed, path)
        test = held_out.numpy()
        test_inputs, test_numbers = inputs[test], numbers[test]
        inputs, numbers = inputs[~test], numbers[~test]
        test_rows, rows = (None, None) if rows is None else (rows[held_out], rows[~held_out])
        provenance = provenance.take(~held_out)
    notes = classes.notes
    if (moved := _find_moved_channels(inputs)) is not None:
        inputs, test_inputs = (np.moveaxis(one, *moved) for one in (inputs, test_inputs))
        where = "first" if moved[0] == 1 else "last"
        channels = inputs.shape[moved[1]]
        notes += (f"The channels of the images are read from the {where} axis ({channels}).",)
    names_of_classes = classes.names if rows is None else NO_CLASSES
    dataset = _rescale(
        path, inputs, numbers, test_inputs, test_numbers, names_of_classes, scale
    )
    found = None
    if listed is not None:
        found = _read_listed(
            listed, (inputs, numbers, rows), classes, moved, names_of_classes, scale
        )
    if rows is not None and test_rows is not None:
        real_task = replace(dataset.task, class_names=classes.names, kind=kind)
        dataset = _with_rows(dataset, rows, test_rows, real_task)
    return replace(
        dataset,
        users=provenance.users,
        user_names=provenance.user_names,
        times=provenance.times,
        records=provenance.records,
        reading=DataReading((), SCALE_WORDS[scale], notes),
        listed=found,
    )


def _read_listed(
    path: Path,
    train: tuple[
        Shaped[np.ndarray, "examples ..."], Int64[np.ndarray, " examples"], Tensor | None
    ],
    outputs: "_Classes | _Outputs",
    moved: tuple[int, int] | None,
    names: tuple[str, ...],
    scale: Scale,
) -> ListedRecords:
    """Read listed records, on the scale of the training part.

    Args:
        path: the file.
        train: the training part: inputs with channels in their place, the numbers of the
            classes, and the rows of labels of a task without classes.
        outputs: what labels stand for.
        moved: how the axis of the channels is moved.
        names: names of the classes.
        scale: how numbers become inputs.

    Raises:
        DataError: if they have another form than the data, one is listed twice, or nothing says
            whose they are.

    """
    arrays = ArrayFile(path)
    column = next((one for one in (OWNER, MEMBER) if one in arrays), None)
    if not {"x", "y"} <= arrays.keys() or column is None:
        raise DataError(
            f"{path}: candidate records need the arrays x and y as the data have them, and "
            f"{OWNER!r} (the client, or 'none') or {MEMBER!r} (1 or 0) of each"
        )
    inputs, labels = arrays["x"], arrays["y"]
    _check_inputs(path, "x", inputs, labels)
    train_inputs, numbers, rows = train
    inputs = inputs if moved is None else np.moveaxis(inputs, *moved)
    are_bytes = [one.dtype == np.uint8 for one in (inputs, train_inputs)]
    if inputs.shape[1:] != train_inputs.shape[1:] or are_bytes[0] != are_bytes[1]:
        raise DataError(
            f"{path}: 'x' is {inputs.dtype} of shape {inputs.shape[1:]} each, but the data are "
            f"{train_inputs.dtype} of {train_inputs.shape[1:]}: give records in the same form"
        )
    read = outputs.numbers(path, "y", labels)
    records = _rescale(path, train_inputs, numbers, inputs, read, names, scale).test
    if rows is not None:
        own_rows = number_rows(path, "y", labels)
        _check_rows(path, rows, own_rows)
        records = without_classes(records.inputs, own_rows)
    cells = arrays[column]
    if cells.shape != inputs.shape[:1] or cells.dtype.kind not in "Ubiuf":
        raise DataError(
            f"{path}: {column!r} must have one cell for each of {len(inputs)} records"
        )
    members = members_of_cells(path, column, list(map(str, cells.tolist())))
    return list_records(path, records, members)


def _find_moved_channels(inputs: Shaped[np.ndarray, "..."]) -> tuple[int, int] | None:
    """Return the axis of the channels and the one where they are expected; None = the same."""
    if inputs.ndim != 4:
        return None
    expected, other = (3, 1) if inputs.dtype == np.uint8 else (1, 3)
    is_elsewhere = inputs.shape[other] in CHANNELS and inputs.shape[expected] not in CHANNELS
    return (other, expected) if is_elsewhere else None


def _check_inputs(
    path: Path, name: str, inputs: Shaped[np.ndarray, "..."], labels: Shaped[np.ndarray, "..."]
) -> None:
    images = inputs.ndim in (3, 4) and (inputs.dtype == np.uint8 or inputs.dtype.kind == "f")
    columns = inputs.ndim == 2 and inputs.dtype.kind in "iuf"
    if not (images or columns) or not inputs.size:
        raise DataError(
            f"{path}: '{name}' must be images (uint8 or real numbers, 3 or 4 axes) or columns "
            f"of numbers (2 axes), but is {inputs.dtype} of shape {inputs.shape}"
        )
    if labels.shape[:1] != inputs.shape[:1]:
        raise DataError(
            f"{path}: '{name}' has {len(inputs)} examples, but the labels have shape "
            f"{labels.shape}: give one label each, or a row of labels"
        )


def _check_rows(path: Path, rows: Tensor | None, test_rows: Tensor | None) -> None:
    if rows is not None and test_rows is not None and rows.shape[1:] != test_rows.shape[1:]:
        raise DataError(f"{path}: 'y_train' and 'y_test' must have as many labels an example")


def _with_rows(
    dataset: Dataset,
    rows: Float[Tensor, "examples outputs"],
    test_rows: Float[Tensor, "test_examples outputs"],
    task: Task,
) -> Dataset:
    """Return a data set with these labels, which are no classes."""
    return replace(
        dataset,
        train=without_classes(dataset.train.inputs, rows),
        test=without_classes(dataset.test.inputs, test_rows),
        task=task,
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Classes:
    """The classes of labels in arrays.

    Args:
        names: their names.
        values: the labels of the file that stand for them, in the order of the names.
        notes: a sentence on each thing that may not be as the owner of the data means it.

    """

    names: tuple[str, ...]
    values: Shaped[np.ndarray, " classes"]
    notes: tuple[str, ...] = ()

    def numbers(
        self, path: Path, name: str, labels: Shaped[np.ndarray, " examples"]
    ) -> Int64[np.ndarray, " examples"]:
        """Return the number of the class of each label, which may be its name.

        Raises:
            DataError: if a label stands for no class.

        """
        labels = class_cells(path, name, labels)
        values = np.array(self.names) if labels.dtype.kind == "U" else self.values
        is_known = np.isin(labels, values)
        if not is_known.all():
            raise DataError(
                f"{path}: '{name}' holds the label {str(labels[~is_known][0])!r}, which is no "
                "class of the training examples: remove or correct it"
            )
        order = np.argsort(values)
        return order[np.searchsorted(values[order], labels)].astype(np.int64)


def _find_outputs(
    path: Path,
    name: str,
    labels: Shaped[np.ndarray, "examples ..."],
    arrays: Arrays,
    kind: TaskKind,
) -> "_Classes | _Outputs":
    """Return the classes, or the names of the outputs of a task without classes."""
    if kind == "classification":
        return _find_classes(path, name, class_cells(path, name, labels), arrays)
    count = 1 if labels.ndim == 1 else labels.shape[1]
    names = output_names(kind, count)
    if "class_names" in arrays:
        names = names_of_array(path, "class_names", arrays["class_names"])
        if len(names) != count:
            raise DataError(
                f"{path}: class_names has {len(names)} names, but examples have {count} labels"
            )
    return _Outputs(checked_names(path, "class_names", list(names)))


@final
@dataclass(frozen=True, slots=True)
class _Outputs:
    """The names of the outputs of a task without classes."""

    names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def numbers(
        self, path: Path, name: str, labels: Shaped[np.ndarray, "examples ..."]
    ) -> Int64[np.ndarray, " examples"]:
        """Return 0 for each example: all are alike."""
        return no_classes(len(labels))


def _find_classes(
    path: Path, name: str, labels: Shaped[np.ndarray, " examples"], arrays: Arrays
) -> _Classes:
    """Return the classes that labels stand for.

    Names stand for themselves, in their order. Numbers are places in `class_names` or, without
    it, classes from 0; if 0 does not occur, the classes are the numbers that occur.

    Raises:
        DataError: if labels are neither, or there are not 2 to `MAX_CLASSES` classes.

    """
    is_named = labels.dtype.kind == "U"
    values, notes = np.unique(labels), tuple[str, ...]()
    if is_named:
        names = [str(value) for value in values.tolist()]
    elif "class_names" in arrays:
        names = list(names_of_array(path, "class_names", arrays["class_names"]))
    elif int(values[0]) > 0 and len(values) <= MAX_CLASSES:
        names = [str(value) for value in values.tolist()]
        notes = (_note_on_first_label(names),)
    else:
        names = [str(number) for number in range(min(int(values[-1]), MAX_CLASSES) + 1)]
    if not 2 <= len(names) <= MAX_CLASSES:
        raise DataError(
            f"{path}: the labels have {len(names)} classes, but must have 2 to {MAX_CLASSES}"
        )
    checked = checked_names(path, "class_names", names)
    if not is_named and not notes:
        checked_numbers(path, name, labels, below=len(names), examples=len(labels))
        return _Classes(checked, np.arange(len(names)), note_empty_classes(checked, labels))
    return _Classes(checked, values, notes)


def _note_on_first_label(names: list[str]) -> str:
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return (
        f"No label is 0: the classes are {shown} in this order, for outputs 0, 1, ... of the "
        "model. If it has outputs for other labels too, give the array class_names."
    )


def note_empty_classes(
    names: tuple[str, ...], labels: Shaped[np.ndarray, " examples"]
) -> tuple[str, ...]:
    """Return a note on the classes without an example."""
    counts = np.bincount(labels.astype(np.int64), minlength=len(names))
    empty = [name for name, count in zip(names, counts.tolist(), strict=True) if not count]
    if not empty:
        return ()
    shown = ", ".join(map(repr, empty[:10])) + (", ..." if len(empty) > 10 else "")
    return (f"No example has the label {shown}.",)


def _rescale(
    path: Path,
    inputs: Shaped[np.ndarray, "examples ..."],
    labels: Int64[np.ndarray, " examples"],
    test_inputs: Shaped[np.ndarray, "test_examples ..."],
    test_labels: Int64[np.ndarray, " test_examples"],
    class_names: tuple[str, ...],
    scale: Scale,
) -> Dataset:
    are_pixels = inputs.dtype == np.uint8 and inputs.ndim > 2
    if are_pixels:
        shapes = [(*part.shape[:3], -1) for part in (inputs, test_inputs)]
        inputs, test_inputs = inputs.reshape(shapes[0]), test_inputs.reshape(shapes[1])
        if scale == "standardised":
            return image_dataset(
                LabelledImages(inputs, labels),
                LabelledImages(test_inputs, test_labels),
                class_names,
            )
        inputs, test_inputs = inputs.transpose(0, 3, 1, 2), test_inputs.transpose(0, 3, 1, 2)
    real, test_real = inputs.astype(np.float64), test_inputs.astype(np.float64)
    if real.ndim == 3:
        real, test_real = real[:, None], test_real[:, None]
    axes = (0, *range(2, real.ndim))
    parts = []
    for values, numbers in ((real, labels), (test_real, test_labels)):
        try:
            if not np.isfinite(values).all():
                raise ValueError("not finite")
            scaled = rescale(values, real, scale, axes).astype(np.float32)
        except ValueError as error:
            raise DataError(
                f"{path}: inputs have NaN, infinity or far too large numbers: correct them"
            ) from error
        parts.append(Examples(torch.from_numpy(scaled), torch.from_numpy(numbers)))
    return Dataset(parts[0], parts[1], Task(tuple(real.shape[1:]), class_names))


def with_listed_arrays(dataset: Dataset, path: Path) -> Dataset:
    """Return a function's data with the candidate records in a file, which are as they are.

    Raises:
        DataError: if they have another form than the data.

    """
    task, train = dataset.task, dataset.train
    if task.vocabulary is not None:
        raise DataError(f"{path}: candidate records of texts come from a table: name one")
    outputs: _Classes | _Outputs = _Outputs(task.class_names)
    rows = train.float_labels
    if rows is None:
        outputs = _Classes(task.class_names, np.arange(task.classes))
    listed = _read_listed(
        path,
        (train.inputs.numpy(), train.labels.numpy(), rows),
        outputs,
        None,
        task.class_names if rows is None else NO_CLASSES,
        "as_written",
    )
    return replace(dataset, listed=listed)
