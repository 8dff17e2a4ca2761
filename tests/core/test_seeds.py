"""Equal paths give equal seeds; different paths give different ones."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed

VALUES = st.integers(0, 2**63 - 1)
PATHS = st.lists(st.text() | st.integers(), min_size=1).map(tuple)


@given(VALUES, PATHS, PATHS)
def test_children_on_different_paths_differ(
    value: int, one: tuple[str | int, ...], other: tuple[str | int, ...]
):
    assert (Seed(value).child(*one) == Seed(value).child(*other)) == (one == other)


def test_a_number_and_its_text_are_different_paths():
    assert Seed(0).child("client", 3) != Seed(0).child("client", "3")
    assert Seed(0).child("a", "b") != Seed(0).child("ab")
    assert Seed(0).child("a", "b") != Seed(0).child("a").child("b")


def test_the_draws_of_a_thousand_children_are_uncorrelated_with_their_number():
    # Spearman's is Pearson's here, as ranks of uniform draws are linear in them; for a thousand
    # independent draws its standard deviation is 1 / sqrt(1000) = 0.032, and 4 of these 0.13.
    draws = torch.stack(
        [
            torch.rand((), generator=Seed(0).child("client", number).generator())
            for number in range(1000)
        ]
    )
    correlation = torch.corrcoef(torch.stack([draws, torch.arange(1000.0)]))[0, 1]
    assert abs(float(correlation)) < 0.13
    assert abs(float(draws.mean()) - 0.5) < 4 * (1 / 12 / 1000) ** 0.5


def test_draws_do_not_affect_other_draws():
    before = Seed(7).child("a").numpy().random(3)
    Seed(7).child("b").numpy().random(1000)
    torch.rand(5)
    assert (Seed(7).child("a").numpy().random(3) == before).all()


@pytest.mark.parametrize("value", [-1, 2**63, 2**64])
def test_refuses_what_no_generator_takes(value: int):
    with pytest.raises(ValueError, match="between 0 and"):
        Seed(value)
