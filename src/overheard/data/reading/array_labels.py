"""What labels of an `.npz` file stand for: classes, several labels, or numbers to predict."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, Int64, Shaped
from torch import Tensor

from overheard.core.errors import DataError
from overheard.core.task import TaskKind
from overheard.data.reading.float_labels import float_label_rows


def kind_of_array(
    path: Path, name: str, labels: Shaped[np.ndarray, "examples ..."], task: TaskKind
) -> TaskKind:
    """Return what an array of labels stands for.

    Names, whole numbers, and zeros and ones are classes, one an example. Rows of zeros and ones
    say which of several labels apply. Other real numbers are to be predicted.

    Args:
        path: the file, for messages.
        name: the name of the array.
        labels: the labels.
        task: "regression" and "multi_label" overrule the form; "classification" does not.

    Raises:
        DataError: if the labels have none of these forms, or another one than the task.

    """
    if labels.ndim not in (1, 2) or labels.dtype.kind not in "Ubiuf" or not labels.size:
        raise DataError(
            f"{path}: '{name}' must be a label per example (names, or whole numbers), a row of "
            f"0 and 1, or real numbers to predict, but is {labels.dtype} of shape "
            f"{labels.shape}"
        )
    is_named = labels.dtype.kind == "U"
    are_bits = not is_named and bool(np.isin(labels, (0, 1)).all())
    columns = 1 if labels.ndim == 1 else labels.shape[1]
    form: TaskKind = "regression"
    if columns == 1 and (is_named or are_bits or labels.dtype.kind in "iu"):
        form = "classification"
    elif are_bits:
        form = "multi_label"
    if task == "regression" and not is_named:
        return task
    if task == "multi_label" and are_bits:
        return task
    if is_named and (task != "classification" or columns > 1):
        raise DataError(
            f"{path}: '{name}' has names in {columns} columns: give one name per example with "
            "task = 'classification', or numbers"
        )
    if task != "classification":
        raise DataError(f"{path}: '{name}' must hold 0 and 1 alone for task = {task!r}")
    return form


def class_cells(
    path: Path, name: str, labels: Shaped[np.ndarray, "examples ..."]
) -> Shaped[np.ndarray, " examples"]:
    """Return labels that are classes as names or whole numbers, without an axis of length 1.

    Raises:
        DataError: if they are neither, or several for an example.

    """
    if labels.size != len(labels) or labels.dtype.kind not in "Ubiuf":
        raise DataError(
            f"{path}: '{name}' must be one class per example, but has the shape {labels.shape}"
        )
    cells = labels.reshape(len(labels))
    if cells.dtype.kind in "Uiu":
        return cells
    if not np.isin(cells, (0, 1)).all():
        raise DataError(f"{path}: '{name}' must hold 0 and 1 alone, as the other labels do")
    return cells.astype(np.int64)


def number_rows(
    path: Path, name: str, labels: Shaped[np.ndarray, "examples ..."]
) -> Float32[Tensor, "examples outputs"]:
    """Return labels that are no classes as they are, a row for each example.

    Raises:
        DataError: if one is NaN, infinite, or too large for float32.

    """
    try:
        return float_label_rows(torch.from_numpy(labels.astype(np.float32)))
    except ValueError as error:
        raise DataError(f"{path}: '{name}': {error}") from error


def no_classes(examples: int) -> Int64[np.ndarray, " examples"]:
    """Return 0 for each example, as all are alike without classes."""
    return np.zeros(examples, np.int64)
