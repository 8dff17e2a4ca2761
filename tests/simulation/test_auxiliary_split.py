import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.simulation.auxiliary_split import split_auxiliary


@given(counts=st.lists(st.integers(3, 40), min_size=2, max_size=5), seed=st.integers(0, 99))
def test_every_example_is_in_one_part_and_every_part_has_every_class(
    counts: list[int], seed: int
) -> None:
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    split = split_auxiliary(labels, len(counts), Seed(seed))
    parts = (split.held_out, *split.halves)
    assert torch.cat(parts).sort().values.tolist() == list(range(len(labels)))
    for rows in parts:
        assert len(labels[rows].unique()) == len(counts)


def test_a_fifth_is_held_out_and_an_odd_rest_gives_the_first_half_one_more() -> None:
    # 12 of class 0: 12 / 5 = 2.4, so 2 held out and 5 + 5; 3 of class 1: 1, 1 and 1;
    # 4 of class 2: 0.8, so 1 held out, then 2 and 1.
    labels = torch.repeat_interleave(torch.arange(3), torch.tensor([12, 3, 4]))
    split = split_auxiliary(labels, 3, Seed(0))
    counts = [labels[r].bincount().tolist() for r in (split.held_out, *split.halves)]
    assert counts == [[2, 1, 1], [5, 1, 2], [5, 1, 1]]


def test_refuses_labels_out_of_range() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        split_auxiliary(torch.arange(9) % 3, 2, Seed(0))
