"""Compression sends the largest numbers of an update exactly, and zero for the others."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.defense import DefenseContext
from overheard.core.messages import Update
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.compression import Compression

MOMENT = DefenseContext(2, client(3), Seed(11))


def compressed(keep: float, delta: dict[str, Tensor]) -> dict[str, Tensor]:
    return dict(Compression(keep).on_update(Update(delta), MOMENT).delta)


def test_sends_the_largest_magnitudes_over_all_tensors() -> None:
    # Of 6 numbers the half are 3: -9, 8 and 3; the first tensor keeps one, the last none.
    got = compressed(
        0.5,
        {
            "a": torch.tensor([[1.0, -9.0], [2.0, 0.5]]),
            "b": torch.tensor([8.0, 3.0]),
        },
    )
    assert got["a"].tolist() == [[0.0, -9.0], [0.0, 0.0]]
    assert got["b"].tolist() == [8.0, 3.0]


@pytest.mark.parametrize(
    ("keep", "params", "count"),
    [
        (0.1, 30, 3),  # in floats 0.1 * 30 exceeds 3
        (0.1, 31, 4),  # 3.1, rounded up
        (0.07, 100, 7),  # in floats 0.07 * 100 exceeds 7
        (1e-9, 5, 1),  # never nothing
        (1.0, 5, 5),
        (0.999, 5, 5),
    ],
)
def test_rounds_the_exact_share_up(keep: float, params: int, count: int) -> None:
    got = compressed(keep, {"a": torch.arange(1.0, params + 1)})["a"]
    assert int((got != 0).sum()) == count


def test_sends_the_first_of_equal_numbers() -> None:
    # 3 of 6: the 5, then the first two of four that measure 2.
    got = compressed(
        0.5, {"a": torch.tensor([1.0, 2.0, -2.0]), "b": torch.tensor([2.0, 5.0, 2.0])}
    )
    assert got["a"].tolist() == [0.0, 2.0, -2.0]
    assert got["b"].tolist() == [0.0, 5.0, 0.0]


@pytest.mark.slow
@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=12),
    st.lists(st.integers(-4, 4), max_size=12),
    st.integers(1, 100),
)
def test_no_omitted_number_is_larger_than_a_sent_one(
    one: list[int], other: list[int], percent: int
) -> None:
    delta = {
        "a": torch.tensor(one, dtype=torch.float32),
        "b": torch.tensor(other, dtype=torch.float64),
    }
    got = compressed(percent / 100, delta)
    before, after = (torch.cat(tuple(part.values())) for part in (delta, got))
    travels = after != 0
    assert torch.equal(before[travels], after[travels])
    count = -(-percent * len(before) // 100)
    # Where fewer than so many are not 0, some of those that travel are.
    assert int(travels.sum()) == min(count, int((before != 0).sum()))
    if travels.any() and not travels.all():
        assert float(before[~travels].abs().max()) <= float(before[travels].abs().min())


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_refuses_an_update_with_nonfinite_numbers_and_names_client_and_round(
    broken: float,
) -> None:
    with pytest.raises(ValueError, match="client/3 in round 2"):
        compressed(0.5, {"a": torch.tensor([1.0, broken])})
