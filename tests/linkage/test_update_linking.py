import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.linkage.update_linking import equal_error_threshold, link_updates


def similarities(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows).double()


# Two updates of round 0, two of round 1; the first and third are similar, as are the others.
FOUR = similarities(
    [1, 0.9, 0.8, 0.1], [0.9, 1, 0.2, 0.7], [0.8, 0.2, 1, 0.9], [0.1, 0.7, 0.9, 1]
)
ROUNDS = torch.tensor([0, 0, 1, 1])


class TestLinked:
    def test_links_updates_above_the_threshold(self) -> None:
        assert _groups(link_updates(FOUR, ROUNDS, 0.5)) == [{0, 2}, {1, 3}]

    def test_does_not_link_updates_below_the_threshold(self) -> None:
        assert _groups(link_updates(FOUR, ROUNDS, 0.75)) == [{0, 2}, {1}, {3}]
        assert _groups(link_updates(FOUR, ROUNDS, float("inf"))) == [{0}, {1}, {2}, {3}]

    def test_groups_are_compared_by_their_mean_similarity(self) -> None:
        # The third has similarity .5 to the first and .1 to the second: .3 on average.
        three = similarities([1, 0.9, 0.5], [0.9, 1, 0.1], [0.5, 0.1, 1])
        rounds = torch.tensor([0, 1, 2])
        assert _groups(link_updates(three, rounds, 0.29)) == [{0, 1, 2}]
        assert _groups(link_updates(three, rounds, 0.31)) == [{0, 1}, {2}]

    def test_one_shared_round_keeps_large_groups_apart(self) -> None:
        # 25 rounds each; the last of one group is the first of the other: one pair of 625.
        rounds = torch.cat([torch.arange(25), torch.arange(24, 49)])
        same = (torch.arange(50) < 25)[:, None] == (torch.arange(50) < 25)
        found = link_updates(torch.where(same, 0.95, 0.9).double(), rounds, -1.0)
        assert _groups(found) == [set(range(25)), set(range(25, 50))]

    @pytest.mark.parametrize("count", [0, 1])
    def test_fewer_than_two_updates_link_nothing(self, count) -> None:
        found = link_updates(torch.ones(count, count).double(), torch.zeros(count).long(), 0.0)
        assert found.tolist() == [0] * count

    @settings(max_examples=20)
    @given(
        st.lists(st.integers(0, 4), min_size=2, max_size=14),
        st.integers(0, 999),
        st.floats(-1, 1),
    )
    def test_never_links_two_updates_of_one_round(self, numbers, seed, threshold) -> None:
        places = torch.randn(len(numbers), 2, generator=Seed(seed).generator()).double()
        places = places / places.norm(dim=1, keepdim=True)
        rounds = torch.tensor(numbers)
        for group in _groups(link_updates(places @ places.T, rounds, threshold)):
            group_rounds = [numbers[row] for row in group]
            assert len(set(group_rounds)) == len(group_rounds)


class TestLeastNearness:
    def test_separable_pairs_give_the_largest_similarity_of_different_users(self) -> None:
        # Across rounds: .8 and .7 are of the same user, .2 and .1 of two users.
        users = torch.tensor([0, 1, 0, 1])
        assert equal_error_threshold(FOUR, users, ROUNDS) == pytest.approx(0.2, abs=1e-3)

    def test_misses_and_false_links_are_equally_frequent(self) -> None:
        # Same user: .8 and .1; two users: .7 and .2. Above .2 half of either is wrong.
        users = torch.tensor([0, 1, 0, 1])
        mixed = FOUR.clone()
        mixed[0, 2], mixed[1, 3], mixed[0, 3], mixed[1, 2] = 0.8, 0.1, 0.7, 0.2
        assert equal_error_threshold(mixed, users, ROUNDS) == pytest.approx(0.2, abs=1e-3)

    def test_links_nothing_if_no_user_has_two_updates(self) -> None:
        assert equal_error_threshold(FOUR, torch.arange(4), ROUNDS) == float("inf")
        assert equal_error_threshold(FOUR, torch.tensor([0, 0, 1, 1]), ROUNDS) == float("inf")


def _groups(numbers: torch.Tensor) -> list[set[int]]:
    """List the rows of each group, ordered by their first row."""
    groups: dict[int, set[int]] = {}
    for row, number in enumerate(numbers.tolist()):
        groups.setdefault(number, set()).add(row)
    return list(groups.values())
