"""A balanced client trains on equally many examples of each class that it holds."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.defense import DefenseContext
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.class_balanced import ClassBalanced


def numbered(*labels: int) -> Examples:
    """Examples whose inputs are 0, 1, 2, ..."""
    return Examples(torch.arange(float(len(labels)))[:, None], torch.tensor(labels))


def balanced(data: Examples, seed: int = 0) -> Examples:
    return ClassBalanced().on_data(data, DefenseContext(2, client(3), Seed(seed)))


def test_repeats_rare_classes_and_omits_examples_of_frequent_ones() -> None:
    # 8 examples of 2 classes: 4 each. The two of class 5 are taken twice each, of the six of
    # class 0 four once.
    got = balanced(numbered(0, 0, 5, 0, 0, 5, 0, 0))
    assert got.labels.bincount().tolist() == [4, 0, 0, 0, 0, 4]
    taken = got.inputs.flatten().int().bincount(minlength=8)
    assert taken[[2, 5]].tolist() == [2, 2]
    assert int(taken[[0, 1, 3, 4, 6, 7]].sum()) == int((taken[[0, 1, 3, 4, 6, 7]] == 1).sum())


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 2**62))
def test_keeps_the_size_and_balances_classes_up_to_one_example(
    labels: list[int], seed: int
) -> None:
    data = numbered(*labels)
    got = balanced(data, seed)
    assert len(got) == len(data)
    before, after = data.label_counts(6), got.label_counts(6)
    assert torch.equal(before > 0, after > 0)
    held = after[after > 0]
    assert int(held.max()) - int(held.min()) <= 1
    # Within a class too: no example is favoured by more than one.
    taken = got.inputs.flatten().long().bincount(minlength=len(labels))
    for label in set(labels):
        own = taken[data.labels == label]
        assert int(own.max()) - int(own.min()) <= 1


def test_the_class_with_one_more_example_varies() -> None:
    # 3 examples of 2 classes: 2 and 1.
    counts = {
        tuple(balanced(numbered(0, 1, 1), seed).label_counts(2).tolist()) for seed in range(20)
    }
    assert counts == {(1, 2), (2, 1)}


def test_a_client_without_examples_gets_none() -> None:
    nobody = Examples(torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64))
    assert len(balanced(nobody)) == 0
