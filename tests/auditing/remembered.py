"""Data sets of every kind with random labels, which a model can only memorise."""

import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset

CLASSES = ("a", "b", "c")
TRAIN, TEST = 360, 30
WORDS = 50


def images() -> Dataset:
    """Grey noise of 4 x 4 pixels."""
    return _dataset((1, 4, 4))


def table() -> Dataset:
    """Twenty columns of noise."""
    return _dataset((20,))


def texts() -> Dataset:
    """Twelve random words each."""
    draw = Seed(2).generator()
    words = torch.randint(1, WORDS, (TRAIN + TEST, 12), generator=draw)
    return _split_dataset(words, Task((12,), CLASSES, WORDS))


def _dataset(shape: tuple[int, ...]) -> Dataset:
    noise = torch.randn(TRAIN + TEST, *shape, generator=Seed(1).generator())
    return _split_dataset(noise, Task(shape, CLASSES))


def _split_dataset(inputs: torch.Tensor, task: Task) -> Dataset:
    labels = torch.randint(len(CLASSES), (len(inputs),), generator=Seed(3).generator())
    return Dataset(
        Examples(inputs[:TRAIN], labels[:TRAIN]), Examples(inputs[TRAIN:], labels[TRAIN:]), task
    )
