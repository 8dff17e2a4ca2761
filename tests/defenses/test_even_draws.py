"""Rows are drawn evenly, in a random order."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.defenses._even_draws import draw_evenly


def drawn(rows: list[int], count: int, seed: int = 0) -> list[int]:
    return draw_evenly(torch.tensor(rows), count, Seed(seed).generator()).tolist()


@given(st.integers(1, 20), st.integers(0, 70))
def test_draws_every_row_equally_often_up_to_one(there: int, count: int) -> None:
    taken = drawn(list(range(5, 5 + there)), count)
    assert len(taken) == count
    often = [taken.count(row) for row in range(5, 5 + there)]
    assert sum(often) == count
    assert max(often) - min(often) <= 1
