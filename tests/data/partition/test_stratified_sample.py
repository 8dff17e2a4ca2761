import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.partition.stratified_sample import draw_stratified


@given(
    counts=st.lists(
        st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=6
    ),
    seed=st.integers(0, 999),
)
def test_each_client_gets_exactly_its_counts_and_no_row_twice(
    counts: list[list[int]], seed: int
) -> None:
    strata = torch.arange(90) % 3
    rows = draw_stratified(strata, torch.tensor(counts), 3, Seed(seed))
    assert [strata[held].bincount(minlength=3).tolist() for held in rows] == counts
    all_rows = torch.cat(rows)
    assert len(all_rows.unique()) == len(all_rows)


def test_one_example_too_many_is_refused_with_its_user_and_label() -> None:
    # Two users of two labels: stratum 3 is label 1 of user 1.
    with pytest.raises(PlanError, match="2 examples of user 1 with label 1 are needed, but 1"):
        draw_stratified(torch.tensor([0, 1, 2, 3]), torch.tensor([[0, 0, 0, 2]]), 2, Seed(0))


def test_examples_of_a_client_are_in_random_order() -> None:
    strata = torch.arange(200) % 2
    (rows,) = draw_stratified(strata, torch.tensor([[50, 50]]), 2, Seed(0))
    assert not strata[rows].equal(strata[rows].sort().values)
