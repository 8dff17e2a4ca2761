import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.data.content_hash import content_hashes


def test_minus_zero_equals_zero() -> None:
    hashes = content_hashes(torch.tensor([[0.0, 1.0], [-0.0, 1.0]]))
    assert hashes[0] == hashes[1]


@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=1, max_size=20))
def test_different_token_rows_have_different_hashes(rows: list[list[int]]) -> None:
    hashes = content_hashes(torch.tensor(rows)).tolist()
    assert len(set(hashes)) == len({tuple(row) for row in rows})
