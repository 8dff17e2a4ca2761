"""A data set of the tensors that a user's own function returns."""

from pathlib import Path

import torch
from jaxtyping import Int, Shaped
from torch import Tensor
from torch.utils.data import TensorDataset

from overheard.core.errors import DataError
from overheard.core.examples import Examples, without_classes
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.holdout import hold_out_fifth
from overheard.data.reading.float_labels import (
    float_label_rows,
    kind_of_labels,
    output_names,
)


# A function of the user may return anything.
def dataset_of_tensors(returned: object, reference: str, seed: Seed) -> Dataset:
    """Return the data set of inputs and labels, of which a fifth of each class is held out.

    Inputs are used as they are, in float32. Classes are named by their numbers. Labels that are
    no classes are used as they are, in float32: a row of 0 and 1 for each example, or real
    numbers (see `data.reading.float_labels`).

    Args:
        returned: a `TensorDataset` of inputs and labels, or the two as a tuple of tensors or
            arrays.
        reference: the function that returned it, for messages.
        seed: chooses the fifth.

    Raises:
        DataError: if it is neither, or if the two do not fit each other.

    """
    parts = returned.tensors if isinstance(returned, TensorDataset) else returned
    if not isinstance(parts, tuple) or len(parts) != 2:
        raise DataError(
            f"{reference} returned an object of type {type(returned).__name__}: it must return "
            "an overheard.data.dataset.Dataset, a TensorDataset of inputs and labels, or both "
            "as a tuple: `return inputs, labels`"
        )
    try:
        inputs, labels = torch.as_tensor(parts[0]), torch.as_tensor(parts[1])
        kind = kind_of_labels(labels)
        if labels.shape[:1] != inputs.shape[:1]:
            raise ValueError(
                f"got {len(inputs)} inputs and labels of shape {tuple(labels.shape)}: give one "
                "label per input"
            )
        inputs = inputs.float() if inputs.is_floating_point() else inputs
        if kind == "classification":
            examples, names = _with_classes(inputs, labels.long())
        else:
            examples = without_classes(inputs, float_label_rows(labels))
            names = output_names(kind, examples.loss_labels.shape[1])
        test = hold_out_fifth(examples.labels, seed, Path(reference))
        task = Task(tuple(inputs.shape[1:]), names, kind=kind)
        return Dataset(examples.take(~test), examples.take(test), task)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"{reference}: {error}") from error


def _with_classes(
    inputs: Shaped[Tensor, "examples ..."], labels: Int[Tensor, " examples"]
) -> tuple[Examples, tuple[str, ...]]:
    """Return examples of classes, and the names of the classes."""
    if int(labels.min()) < 0:
        raise ValueError(f"labels must be numbers from 0, but one is {int(labels.min())}")
    return Examples(inputs, labels), tuple(map(str, range(int(labels.max()) + 1)))
