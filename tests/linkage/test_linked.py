import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.linkage.linked import least_nearness, linked


def near(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows).double()


# Two updates of round 0, two of round 1: the first and the third are near, as are the others.
FOUR = near([1, 0.9, 0.8, 0.1], [0.9, 1, 0.2, 0.7], [0.8, 0.2, 1, 0.9], [0.1, 0.7, 0.9, 1])
ROUNDS = torch.tensor([0, 0, 1, 1])


class TestLinked:
    def test_updates_that_are_near_enough_have_one_number(self) -> None:
        assert _groups(linked(FOUR, ROUNDS, 0.5)) == [{0, 2}, {1, 3}]

    def test_those_that_are_not_have_one_each(self) -> None:
        assert _groups(linked(FOUR, ROUNDS, 0.75)) == [{0, 2}, {1}, {3}]
        assert _groups(linked(FOUR, ROUNDS, float("inf"))) == [{0}, {1}, {2}, {3}]

    def test_a_group_is_as_near_as_its_updates_on_average(self) -> None:
        # The third is near to the first by .5 and to the second by .1: .3 on average.
        three = near([1, 0.9, 0.5], [0.9, 1, 0.1], [0.5, 0.1, 1])
        rounds = torch.tensor([0, 1, 2])
        assert _groups(linked(three, rounds, 0.29)) == [{0, 1, 2}]
        assert _groups(linked(three, rounds, 0.31)) == [{0, 1}, {2}]

    def test_what_may_not_meet_keeps_even_large_groups_apart(self) -> None:
        # 25 rounds each, of which they share the last and first: one pair of 625.
        rounds = torch.cat([torch.arange(25), torch.arange(24, 49)])
        same = (torch.arange(50) < 25)[:, None] == (torch.arange(50) < 25)
        told = linked(torch.where(same, 0.95, 0.9).double(), rounds, -1.0)
        assert _groups(told) == [set(range(25)), set(range(25, 50))]

    @pytest.mark.parametrize("count", [0, 1])
    def test_fewer_than_two_link_nothing(self, count) -> None:
        told = linked(torch.ones(count, count).double(), torch.zeros(count).long(), 0.0)
        assert told.tolist() == [0] * count

    @settings(deadline=None, max_examples=20)
    @given(
        st.lists(st.integers(0, 4), min_size=2, max_size=14),
        st.integers(0, 999),
        st.floats(-1, 1),
    )
    def test_never_links_two_updates_of_one_round(self, numbers, seed, least) -> None:
        places = torch.randn(len(numbers), 2, generator=Seed(seed).generator()).double()
        places = places / places.norm(dim=1, keepdim=True)
        rounds = torch.tensor(numbers)
        for group in _groups(linked(places @ places.T, rounds, least)):
            own = [numbers[row] for row in group]
            assert len(set(own)) == len(own)


class TestLeastNearness:
    def test_lies_just_above_pairs_of_two_where_those_of_one_are_all_nearer(self) -> None:
        # Across rounds: .8 and .7 are of one person, .2 and .1 of two.
        people = torch.tensor([0, 1, 0, 1])
        assert least_nearness(FOUR, people, ROUNDS) == pytest.approx(0.2, abs=1e-3)

    def test_misses_as_many_as_it_takes_for_another(self) -> None:
        # Pairs of one: .8 and .1; of two: .7 and .2. Above .2 half of either is wrong.
        people = torch.tensor([0, 1, 0, 1])
        mixed = FOUR.clone()
        mixed[0, 2], mixed[1, 3], mixed[0, 3], mixed[1, 2] = 0.8, 0.1, 0.7, 0.2
        assert least_nearness(mixed, people, ROUNDS) == pytest.approx(0.2, abs=1e-3)

    def test_links_nothing_where_nobody_was_heard_twice(self) -> None:
        assert least_nearness(FOUR, torch.arange(4), ROUNDS) == float("inf")
        assert least_nearness(FOUR, torch.tensor([0, 0, 1, 1]), ROUNDS) == float("inf")


def _groups(numbers: torch.Tensor) -> list[set[int]]:
    """The rows of each number, by the first of them."""
    groups: dict[int, set[int]] = {}
    for row, number in enumerate(numbers.tolist()):
        groups.setdefault(number, set()).add(row)
    return list(groups.values())
