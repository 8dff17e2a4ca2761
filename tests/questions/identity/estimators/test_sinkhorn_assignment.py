import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from overheard.core.seeds import Seed
from overheard.questions.identity.estimators.sinkhorn_assignment import sinkhorn_assignment


def log(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows).double().log()


def test_two_equal_senders_share_one_user() -> None:
    # By the price x of the first user: .8 x / (.8 x + .2) = 1/2 for both.
    result = sinkhorn_assignment(log([0.8, 0.2], [0.8, 0.2])).exp()
    assert result.flatten().tolist() == pytest.approx([0.5] * 4, abs=1e-4)


def test_the_sender_with_the_higher_score_gets_the_user() -> None:
    # Odds 9 x and 1.5 x, whose probabilities sum to 1 if their product is 1: x =
    # 13.5^(-1/2). The odds are 6^(1/2) = 2.449 and its inverse, or .7101 and .2899.
    result = sinkhorn_assignment(log([0.9, 0.1], [0.6, 0.4])).exp()
    assert result.flatten().tolist() == pytest.approx(
        [0.7101, 0.2899, 0.2899, 0.7101], abs=2e-4
    )


def test_one_sender_is_unchanged_if_other_users_sent_nothing() -> None:
    scores = log([0.7, 0.2, 0.1])
    assert sinkhorn_assignment(scores).allclose(scores)


def test_with_more_senders_than_users_each_user_gets_an_equal_sum() -> None:
    result = sinkhorn_assignment(log([0.9, 0.1], [0.6, 0.4], [0.8, 0.2])).exp()
    assert result.sum(0).tolist() == pytest.approx([1.5, 1.5], abs=1e-3)


scores_of = st.tuples(st.integers(0, 999), st.integers(1, 6), st.integers(0, 3)).map(
    lambda drawn: (
        3
        * torch.randn(
            drawn[1],
            drawn[1] + drawn[2],
            generator=Seed(drawn[0]).generator(),
            dtype=torch.float64,
        )
    )
)


@given(scores_of)
def test_sums_are_at_most_one_over_senders_and_one_over_users(scores) -> None:
    chances = sinkhorn_assignment(scores).exp()
    assert float(chances.sum(0).max()) <= 1.02
    assert chances.sum(1).allclose(torch.ones(len(chances)).double())


@given(scores_of, st.floats(-50, 50))
def test_a_constant_added_to_a_sender_changes_nothing(scores, level) -> None:
    moved = scores.clone()
    moved[0] += level
    assert sinkhorn_assignment(moved).allclose(sinkhorn_assignment(scores), atol=1e-6)


@given(scores_of, st.randoms(use_true_random=False))
def test_permuting_senders_and_users_permutes_the_result(scores, random) -> None:
    rows = random.sample(range(len(scores)), len(scores))
    columns = random.sample(range(scores.shape[1]), scores.shape[1])
    assert sinkhorn_assignment(scores[rows][:, columns]).allclose(
        sinkhorn_assignment(scores)[rows][:, columns], atol=1e-6
    )


@given(st.permutations(range(5)), st.integers(0, 99))
def test_a_clear_assignment_is_unchanged(order, seed) -> None:
    scores = torch.randn(5, 5, generator=Seed(seed).generator(), dtype=torch.float64)
    scores[range(5), list(order)] += 12
    assert sinkhorn_assignment(scores).argmax(1).tolist() == list(order)


@pytest.mark.parametrize("scale", [300.0, 10000.0])
def test_scores_far_apart_give_the_best_assignment(scale: float) -> None:
    draw = Seed(0).generator()
    scores = scale * torch.randn(40, 40, generator=draw, dtype=torch.float64)
    senders, users = linear_sum_assignment(scores.numpy(), maximize=True)
    result = sinkhorn_assignment(scores)
    # By each sender's own scores, several would be one user.
    assert len(set(scores.argmax(1).tolist())) < 35
    assert result.argmax(1)[senders].tolist() == users.tolist()
    assert float(result.exp().sum(0).max()) <= 1.02
