"""Data sets have equal digests if and only if results from them are equal."""

from dataclasses import fields, replace

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.task import Task
from overheard.data.dataset import DataReading, Dataset
from overheard.data.dataset_digest import dataset_digest

NUMBERS = torch.arange(4)
EXAMPLES = Examples(torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8]]), NUMBERS % 2)
DATASET = Dataset(
    EXAMPLES,
    EXAMPLES,
    Task((2,), ("no", "yes"), vocabulary=9),
    users=NUMBERS,
    user_names=("a", "b", "c", "d"),
    times=NUMBERS,
    records=NUMBERS,
    embeddings=torch.ones(4, 2),
    attributes={"hand": ("left", "left", "right", "left"), "age": ("1", "2", "3", "4")},
    background=EXAMPLES,
    token_words=TokenWords(9, words=tuple("abcdefgh")),
)
OTHER = replace(EXAMPLES, inputs=EXAMPLES.inputs.flip(0))
CHANGES: dict[str, tuple[object, ...]] = {
    "train": (OTHER, EXAMPLES.take(torch.tensor([0, 1, 3, 2]))),
    "test": (OTHER,),
    "task": (Task((2,), ("yes", "no"), vocabulary=9),),
    "users": (NUMBERS.flip(0), NUMBERS.int()),
    "user_names": (("a", "b", "d", "c"),),
    "times": (NUMBERS + 1, None),
    "records": (NUMBERS.flip(0),),
    "embeddings": (torch.ones(4, 2).double(), torch.ones(4, 2) + 1e-6),
    "attributes": ({"hand": ("left", "right", "right", "left"), "age": ("1", "2", "3", "4")},),
    "background": (OTHER, None),
    "token_words": (TokenWords(9, words=tuple("abcdefgi")),),
}


def test_equal_content_has_an_equal_digest_however_it_was_read() -> None:
    copied = Examples(EXAMPLES.inputs.clone().t().contiguous().t(), EXAMPLES.labels.clone())
    attributes = dict(reversed(DATASET.attributes.items()))
    other = replace(DATASET, train=copied, attributes=attributes)
    other = replace(other, reading=DataReading(notes=("a note",)))
    assert dataset_digest(other) == dataset_digest(DATASET)


@pytest.mark.parametrize("name", [one.name for one in fields(Dataset) if one.name != "reading"])
def test_any_other_field_changes_the_digest(name: str) -> None:
    for value in CHANGES[name]:
        # What would not fit the rest is left out of the check.
        changed = replace(DATASET, **{name: value})
        assert dataset_digest(changed) != dataset_digest(DATASET), value


def test_what_moves_from_one_field_to_the_next_changes_the_digest() -> None:
    one, other = replace(DATASET, records=None), replace(DATASET, times=None)
    assert dataset_digest(one) != dataset_digest(other)
