"""Hashes of examples by content, which tell copies."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Int64, Shaped
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset

CHUNK = 4096
"""Examples hashed at a time, which bounds the memory of the products."""

_HASHED = WeakTensorKeyDictionary()
"""Results of `hash_contents`, by the inputs of the training part and then of the test part."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ContentHashes:
    """Hashes of the examples of a data set: equal inputs have equal hashes.

    Args:
        train: those of the training part.
        test: those of the test part.
        is_unique: marks the training examples whose content occurs once in both parts.

    """

    train: Int64[Tensor, " examples"]
    test: Int64[Tensor, " test_examples"]
    is_unique: Bool[Tensor, " examples"]


def hash_contents(dataset: Dataset) -> ContentHashes:
    """Return the hashes of all examples of a data set.

    The result is cached for as long as the data set exists, since many partitions may be drawn
    from it. Computing it takes 0.1 s for the 70,000 images of MNIST.
    """
    train, test = dataset.train.inputs, dataset.test.inputs
    if train not in _HASHED:
        _HASHED[train] = WeakTensorKeyDictionary()
    hashed = _HASHED[train]
    if test not in hashed:
        hashes = torch.cat([content_hashes(train), content_hashes(test)])
        _, key_index, copies = np.unique(
            hashes.numpy(), return_inverse=True, return_counts=True
        )
        is_unique: Bool[np.ndarray, " hashes"] = copies[key_index] == 1
        parts = hashes[: len(train)], hashes[len(train) :]
        hashed[test] = ContentHashes(*parts, torch.from_numpy(is_unique[: len(train)]))
    found: ContentHashes = hashed[test]
    return found


def content_hashes(inputs: Shaped[Tensor, "examples ..."]) -> Int64[Tensor, " examples"]:
    """Return a hash for each example; equal inputs have equal hashes.

    The bits of the inputs are multiplied by fixed random odd numbers and summed modulo 2^64.
    Two different inputs collide with a probability below 2^-32. This is enough to leave out
    an example as a precaution, but no proof that two examples are equal. Takes 0.1 s for
    60,000 images of 28 x 28.
    """
    # Adding 0 turns -0.0 into 0.0, which is equal but has different bits.
    flat = (inputs.float() + 0.0).flatten(1).contiguous().view(torch.int32)
    generator = Seed(0).child("content keys").generator()
    factors = torch.randint(-(2**62), 2**62, (flat.shape[1],), generator=generator) * 2 + 1
    hashes = torch.empty(len(flat), dtype=torch.int64)
    for start in range(0, len(flat), CHUNK):
        batch = slice(start, start + CHUNK)
        hashes[batch] = (flat[batch].long() * factors).sum(1)
    return hashes
