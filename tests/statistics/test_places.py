"""Who shares a place has it with a chance."""

import pytest
import torch

from overheard.statistics.places import Place, place


def test_a_place_counts_those_before_and_those_beside() -> None:
    scores = torch.tensor([0.3, 0.9, 0.3, 0.1])
    assert [place(scores, number) for number in range(4)] == [
        Place(1, 2), Place(0, 1), Place(1, 2), Place(3, 1),
    ]  # fmt: skip


def test_a_tie_across_the_edge_of_a_list_is_on_it_with_a_chance() -> None:
    # Two before, three share the places 3, 4, 5: of a list of 4 they hold 2 of 3 places.
    shared = Place(2, 3)
    assert [shared.within(length) for length in (2, 4, 5, 9)] == pytest.approx([0, 2 / 3, 1, 1])
    assert shared.reciprocal_rank() == pytest.approx((1 / 3 + 1 / 4 + 1 / 5) / 3)


def test_all_alike_is_a_random_order() -> None:
    alike = place(torch.zeros(10), 7)
    assert alike.within(1) == pytest.approx(1 / 10)
    assert alike.within(5) == pytest.approx(5 / 10)
