import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.linkage.wccn import WccnSpace, fit_wccn_transform, mean_by_user

# The updates of one user differ by 2 to either side along the first axis, those of the other
# by 1 along the second: W = diag(4 + 4, 1 + 1) / (4 updates - 2 users) = diag(4, 1).
PLACES = torch.tensor([[3.0, 0], [-1, 0], [5, 1], [5, -1]]).double()
USERS = torch.tensor([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("shrinkage", "variances"),
    # Towards the mean variance of 2.5: .6 * 4 + .4 * 2.5 = 3.4, .6 * 1 + .4 * 2.5 = 1.6.
    [(0.0, (4.0, 1.0)), (0.4, (3.4, 1.6)), (1.0, (2.5, 2.5))],
)
def test_directions_are_weighted_by_inverse_within_user_variance(shrinkage, variances) -> None:
    turn = fit_wccn_transform(PLACES, USERS, shrinkage)
    # Inner products after the transform: x T T^T y, hence T T^T = W^-1.
    expected = torch.diag(1 / torch.tensor(variances).double())
    assert (turn @ turn.T).allclose(expected, atol=1e-9)


@pytest.mark.parametrize("people", [[0, 1, 2, 3], [2, 0, 1, 5]])
def test_without_two_updates_of_a_user_the_transform_is_the_identity(people) -> None:
    assert fit_wccn_transform(PLACES, torch.tensor(people), 0.1).equal(torch.eye(2).double())


def test_cosines_are_taken_after_the_transform() -> None:
    turn = torch.diag(torch.tensor([0.5, 1.0]))
    space = WccnSpace(turn, torch.tensor([[1.0, 0], [0, 0], [1, 1]]))
    # (2, 1) is transformed to (1, 1).
    cosines = space.cosines(torch.tensor([[2.0, 1.0], [0.0, 0.0]]))
    assert cosines[0].tolist() == pytest.approx([0.5**0.5, 0, 1])
    assert cosines[1].tolist() == [0, 0, 0]


@settings(max_examples=20)
@given(st.integers(0, 999), st.floats(0.01, 1), st.permutations(range(9)))
def test_cosines_do_not_depend_on_order_and_scale(seed, shrinkage, order) -> None:
    places = torch.randn(9, 4, generator=Seed(seed).generator(), dtype=torch.float64)
    users = torch.arange(9) % 3
    cosines = []
    for updates, user_indices in ((places, users), (7 * places[order], users[order])):
        turn = fit_wccn_transform(updates, user_indices, shrinkage)
        cosines.append(
            WccnSpace(turn, mean_by_user(updates, user_indices, 3) @ turn).cosines(places)
        )
    assert cosines[0].allclose(cosines[1], atol=1e-6)
