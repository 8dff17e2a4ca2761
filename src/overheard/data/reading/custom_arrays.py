"""A loader of the user's own arrays in an `.npz` file."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64, Shaped

from overheard.core.errors import DataError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.reading.arrays import (
    checked_names,
    checked_numbers,
    list_arrays,
    read_array,
    read_names,
)
from overheard.data.reading.images import LabelledImages, image_dataset
from overheard.data.reading.provenance import read_provenance

MAX_CLASSES = 1000
"""The most classes; a column with more values is a number or a name, not a class."""


def load_arrays(path: Path, seed: Seed) -> Dataset:
    """Load the data set in the arrays `x_<part>` and `y_<part>`, or `x`, `y`.

    Inputs are 8-bit images (examples x height x width, then channels if there are any), images
    of real numbers (channels first) or columns of numbers. They are standardised by the
    training part, per channel or per column. Labels are numbers from 0, or names.

    Optional arrays, without the suffix `"_train"` if there is no test part:

    - `class_names`: names of labels that are numbers.
    - `"user_train"`: the user of each training example.
    - `"times_train"`: the time of each, as numbers or ISO dates.
    - `"records_train"`: the number or name of the record from which each was cut.

    Without a test part, a fifth of each label is held out; with records, a fifth of the
    records, each with all its examples.

    Raises:
        DataError: if the arrays have another form.

    """
    names = list_arrays(path)
    part = "" if "x" in names and "x_train" not in names else "_train"
    inputs, labels = read_array(path, f"x{part}"), read_array(path, f"y{part}")
    _check_inputs(path, f"x{part}", inputs, labels)
    class_names = _class_names(path, labels, names)
    numbers = _label_numbers(path, f"y{part}", labels, class_names)
    provenance = read_provenance(path, part, names, len(inputs))
    if part and "x_test" in names:
        test_inputs, test_labels = read_array(path, "x_test"), read_array(path, "y_test")
        _check_inputs(path, "x_test", test_inputs, test_labels)
        if test_inputs.shape[1:] != inputs.shape[1:] or test_inputs.dtype != inputs.dtype:
            raise DataError(f"{path}: 'x_train' and 'x_test' must have one type and shape")
        test_numbers = _label_numbers(path, "y_test", test_labels, class_names)
    else:
        held_out = provenance.hold_out_fifth(torch.from_numpy(numbers), seed, path)
        test = held_out.numpy()
        test_inputs, test_numbers = inputs[test], numbers[test]
        inputs, numbers = inputs[~test], numbers[~test]
        provenance = provenance.take(~held_out)
    dataset = _standardise(path, inputs, numbers, test_inputs, test_numbers, class_names)
    return replace(
        dataset,
        users=provenance.users,
        user_names=provenance.user_names,
        times=provenance.times,
        records=provenance.records,
    )


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
    if labels.shape != inputs.shape[:1]:
        raise DataError(
            f"{path}: '{name}' has {len(inputs)} examples, but the labels have shape "
            f"{labels.shape}: give one label each; several labels of an example come from a "
            "function, or from a table with task = 'multi_label'"
        )


def _class_names(
    path: Path, labels: Shaped[np.ndarray, " examples"], arrays: frozenset[str]
) -> tuple[str, ...]:
    if labels.dtype.kind == "U":
        names = np.unique(labels).tolist()
    elif "class_names" in arrays:
        names = list(read_names(path, "class_names"))
    elif labels.dtype.kind in "iu":
        names = [str(number) for number in range(min(int(labels.max()), MAX_CLASSES) + 1)]
    else:
        raise DataError(
            f"{path}: labels must be whole numbers or names, but are {labels.dtype}. "
            "Numbers to predict come from a function, or from a table with task = 'regression'"
        )
    if not 2 <= len(names) <= MAX_CLASSES:
        raise DataError(
            f"{path}: the labels have {len(names)} classes, but must have 2 to {MAX_CLASSES}"
        )
    return checked_names(path, "class_names", names)


def _label_numbers(
    path: Path,
    name: str,
    labels: Shaped[np.ndarray, " examples"],
    class_names: tuple[str, ...],
) -> Int64[np.ndarray, " examples"]:
    if labels.dtype.kind == "U":
        is_known = np.isin(labels, class_names)
        if not is_known.all():
            raise DataError(
                f"{path}: '{name}' holds the label {str(labels[~is_known][0])!r}, which no "
                "training example has: remove or correct it"
            )
        order = np.argsort(class_names)
        return order[np.searchsorted(np.array(class_names)[order], labels)].astype(np.int64)
    return checked_numbers(path, name, labels, below=len(class_names), examples=len(labels))


def _standardise(
    path: Path,
    inputs: Shaped[np.ndarray, "examples ..."],
    labels: Int64[np.ndarray, " examples"],
    test_inputs: Shaped[np.ndarray, "test_examples ..."],
    test_labels: Int64[np.ndarray, " test_examples"],
    class_names: tuple[str, ...],
) -> Dataset:
    if inputs.dtype == np.uint8 and inputs.ndim > 2:
        shapes = [(*part.shape[:3], -1) for part in (inputs, test_inputs)]
        return image_dataset(
            LabelledImages(inputs.reshape(shapes[0]), labels),
            LabelledImages(test_inputs.reshape(shapes[1]), test_labels),
            class_names,
        )
    real, test_real = inputs.astype(np.float64), test_inputs.astype(np.float64)
    if inputs.ndim == 3:
        real, test_real = real[:, None], test_real[:, None]
    axes = (0, *range(2, real.ndim))
    with np.errstate(over="ignore", invalid="ignore"):
        mean = real.mean(axis=axes, keepdims=True)
        deviation = real.std(axis=axes, keepdims=True)
    # A constant column becomes 0.
    deviation[deviation == 0] = 1
    parts = []
    for values, numbers in ((real, labels), (test_real, test_labels)):
        with np.errstate(over="ignore", invalid="ignore"):
            standard = torch.from_numpy(((values - mean) / deviation).astype(np.float32))
        if not bool(standard.isfinite().all()) or not np.isfinite(deviation).all():
            raise DataError(
                f"{path}: inputs have NaN, infinity or far too large numbers: correct them"
            )
        parts.append(Examples(standard, torch.from_numpy(numbers)))
    return Dataset(parts[0], parts[1], Task(tuple(real.shape[1:]), class_names))
