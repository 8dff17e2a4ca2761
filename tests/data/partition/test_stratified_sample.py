import torch
from hypothesis import given
from hypothesis import strategies as st

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
