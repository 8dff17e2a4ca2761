import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.data.contents import content_keys


def test_equal_inputs_have_equal_keys_and_others_others() -> None:
    inputs = torch.randn(50, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    keys = content_keys(torch.cat([inputs, inputs]))
    assert keys[:50].equal(keys[50:])
    assert len(keys.unique()) == 50


def test_minus_zero_is_zero() -> None:
    keys = content_keys(torch.tensor([[0.0, 1.0], [-0.0, 1.0]]))
    assert keys[0] == keys[1]


@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=1, max_size=20))
def test_keys_tell_token_rows_apart(rows: list[list[int]]) -> None:
    keys = content_keys(torch.tensor(rows)).tolist()
    assert len(set(keys)) == len({tuple(row) for row in rows})
