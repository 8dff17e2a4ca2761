import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.partition.draw import draw


@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(
        st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=6
    ),
    seed=st.integers(0, 999),
)
def test_each_client_gets_exactly_its_counts_and_no_row_twice(
    counts: list[list[int]], seed: int
) -> None:
    kinds = torch.arange(90) % 3
    rows = draw(kinds, torch.tensor(counts), 3, Seed(seed))
    assert [kinds[held].bincount(minlength=3).tolist() for held in rows] == counts
    together = torch.cat(rows)
    assert len(together.unique()) == len(together)


def test_one_example_too_many_is_refused_with_its_user_and_label() -> None:
    # Two users of two labels: kind 3 is user 1's label 1.
    with pytest.raises(PlanError, match="2 examples of user 1 with label 1 are needed and 1"):
        draw(torch.tensor([0, 1, 2, 3]), torch.tensor([[0, 0, 0, 2]]), 2, Seed(0))


def test_examples_of_a_client_come_in_mixed_order() -> None:
    kinds = torch.arange(200) % 2
    (rows,) = draw(kinds, torch.tensor([[50, 50]]), 2, Seed(0))
    assert not kinds[rows].equal(kinds[rows].sort().values)
