import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.linkage.user_space import UserSpace, mean_by, turn_within

# The updates of one user differ by 2 to either side along the first axis, those of the other
# by 1 along the second: W = diag(4 + 4, 1 + 1) / (4 updates - 2 users) = diag(4, 1).
PLACES = torch.tensor([[3.0, 0], [-1, 0], [5, 1], [5, -1]]).double()
PEOPLE = torch.tensor([0, 0, 1, 1])


def test_the_mean_of_each_person_is_zero_where_nothing_is_known() -> None:
    means = mean_by(PLACES, torch.tensor([0, 0, 2, 2]), 4)
    assert means.tolist() == [[1, 0], [0, 0], [5, 0], [0, 0]]


@pytest.mark.parametrize(
    ("shrinkage", "variances"),
    # Towards the mean variance of 2.5: .6 * 4 + .4 * 2.5 = 3.4, .6 * 1 + .4 * 2.5 = 1.6.
    [(0.0, (4.0, 1.0)), (0.4, (3.4, 1.6)), (1.0, (2.5, 2.5))],
)
def test_a_direction_counts_the_less_the_more_users_differ_from_themselves(
    shrinkage, variances
) -> None:
    turn = turn_within(PLACES, PEOPLE, shrinkage)
    # Inner products after the turn: x T T^T y, hence T T^T = W^-1.
    expected = torch.diag(1 / torch.tensor(variances).double())
    assert (turn @ turn.T).allclose(expected, atol=1e-9)


def test_after_the_turn_users_differ_alike_in_all_directions() -> None:
    turned = PLACES @ turn_within(PLACES, PEOPLE, 0.0)
    apart = turned - mean_by(turned, PEOPLE, 2)[PEOPLE]
    assert (apart.T @ apart / 2).allclose(torch.eye(2).double(), atol=1e-9)


@pytest.mark.parametrize("people", [[0, 1, 2, 3], [2, 0, 1, 5]])
def test_where_no_user_has_two_updates_nothing_is_turned(people) -> None:
    assert turn_within(PLACES, torch.tensor(people), 0.1).equal(torch.eye(2).double())


def test_where_updates_of_a_user_are_the_same_nothing_is_turned() -> None:
    places = PLACES[[0, 0, 2, 2]]
    assert turn_within(places, PEOPLE, 0.1).equal(torch.eye(2).double())


def test_cosines_are_those_after_the_turn_and_zero_for_an_unknown_user() -> None:
    turn = torch.diag(torch.tensor([0.5, 1.0]))
    space = UserSpace(turn, torch.tensor([[1.0, 0], [0, 0], [1, 1]]))
    # (2, 1) is turned to (1, 1).
    told = space.cosines(torch.tensor([[2.0, 1.0], [0.0, 0.0]]))
    assert told[0].tolist() == pytest.approx([0.5**0.5, 0, 1])
    assert told[1].tolist() == [0, 0, 0]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 999), st.floats(0.01, 1), st.permutations(range(9)))
def test_the_order_and_the_scale_of_updates_move_no_cosine(seed, shrinkage, order) -> None:
    places = torch.randn(9, 4, generator=Seed(seed).generator(), dtype=torch.float64)
    people = torch.arange(9) % 3
    told = []
    for own, whose in ((places, people), (7 * places[order], people[order])):
        turn = turn_within(own, whose, shrinkage)
        told.append(UserSpace(turn, mean_by(own, whose, 3) @ turn).cosines(places))
    assert told[0].allclose(told[1], atol=1e-6)
