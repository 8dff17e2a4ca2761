"""A data set of the tensors that a user's own function returns."""

from pathlib import Path

import torch
from torch.utils.data import TensorDataset

from overheard.core.errors import DataError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.holdout import hold_out_fifth


# A function of the user may return anything.
def dataset_of_tensors(returned: object, reference: str, seed: Seed) -> Dataset:
    """Return the data set of inputs and labels, of which a fifth of each label is held out.

    Inputs are used as they are, in float32. Classes are named by their numbers.

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
        if labels.shape != inputs.shape[:1] or labels.is_floating_point():
            raise ValueError(
                f"labels must be whole numbers, one for each of {len(inputs)} inputs, but are "
                f"{labels.dtype} of shape {tuple(labels.shape)}"
            )
        labels = labels.long()
        if int(labels.min()) < 0:
            raise ValueError(f"labels must be numbers from 0, but one is {int(labels.min())}")
        inputs = inputs.float() if inputs.is_floating_point() else inputs
        test = hold_out_fifth(labels, seed, Path(reference))
        names = tuple(map(str, range(int(labels.max()) + 1)))
        return Dataset(
            Examples(inputs[~test], labels[~test]),
            Examples(inputs[test], labels[test]),
            Task(tuple(inputs.shape[1:]), names),
        )
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"{reference}: {error}") from error
