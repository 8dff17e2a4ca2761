"""Losses, and sums of outcomes by class."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.knowledge import Knowledge
from overheard.core.messages import apply_update
from overheard.core.seeds import Seed
from overheard.learning import confusion
from overheard.learning.confusion import (
    confusion_of_model,
    confusion_of_updates,
    mean_output_by_class,
)
from overheard.learning.initialization import initial_weights
from overheard.learning.loss import mean_loss, per_example_loss
from overheard.learning.simplex import solve_for_shares
from tests.learning.cases import MLP, TABLE, pool_of

LOGITS = torch.tensor([[0.0, 0.0, math.log(2)], [0.0, 0.0, 0.0]], dtype=torch.float64)
LABELS = torch.tensor([2, 0])
"""Softmax (1/4, 1/4, 1/2) and (1/3, 1/3, 1/3): ratings of 5/4 and 1 are expected."""


def test_the_squared_error_is_that_of_the_expected_rating():
    # (5/4 - 2)^2 = 9/16 and (1 - 0)^2 = 1; their mean is 25/32.
    each = per_example_loss(LOGITS, LABELS, "squared_error", 0.0)
    assert each.tolist() == pytest.approx([9 / 16, 1])
    mean = mean_loss(LOGITS, LABELS, "squared_error", 0.0)
    assert float(mean) == pytest.approx(25 / 32)


def test_the_cross_entropy_is_that_of_the_smoothed_target():
    # -log 1/2 and -log 1/3. Smoothed by 3/10 the first target is (1/10, 1/10, 8/10).
    plain, even = math.log(2), math.log(3)
    each = per_example_loss(LOGITS, LABELS, "cross_entropy", 0.0)
    assert each.tolist() == pytest.approx([plain, even])
    each = per_example_loss(LOGITS, LABELS, "cross_entropy", 0.3)
    assert each.tolist() == pytest.approx([0.2 * math.log(4) + 0.8 * plain, even])
    mean = mean_loss(LOGITS, LABELS, "cross_entropy", 0.3)
    assert float(mean) == pytest.approx((0.2 * math.log(4) + 0.8 * plain + even) / 2)


NUMBERS = torch.tensor([[1.0, 3.0], [0.0, 2.0]], dtype=torch.float64)
WANTED = torch.tensor([[0.0, 1.0], [0.0, 2.0]])


def test_the_squared_error_of_numbers_is_averaged_over_them():
    # (1 + 4) / 2 and 0; their mean is 5/4.
    assert per_example_loss(NUMBERS, WANTED, "squared_error", 0.0).tolist() == [2.5, 0.0]
    assert float(mean_loss(NUMBERS, WANTED, "squared_error", 0.0)) == 1.25


def test_the_binary_cross_entropy_is_averaged_over_labels():
    # Logits of log 3 and 0 are probabilities of 3/4 and 1/2.
    logits = torch.tensor([[math.log(3), 0.0]], dtype=torch.float64)
    labels = torch.tensor([[1.0, 0.0]])
    (each,) = per_example_loss(logits, labels, "binary_cross_entropy", 0.0).tolist()
    assert each == pytest.approx((math.log(4 / 3) + math.log(2)) / 2)
    assert float(mean_loss(logits, labels, "binary_cross_entropy", 0.0)) == pytest.approx(each)


def test_rows_are_the_mean_outputs_of_each_class():
    # Two examples of class 0 with outputs (1/2, 1/2) and (3/4, 1/4): mean (5/8, 3/8); one of
    # class 1 with (1/5, 4/5).
    logits = torch.tensor([[1.0, 1.0], [3.0, 1.0], [1.0, 4.0]]).log()
    rows = mean_output_by_class(logits, torch.tensor([0, 0, 1]))
    expected = torch.tensor([[0.625, 0.375], [0.2, 0.8]], dtype=torch.float64)
    torch.testing.assert_close(rows, expected, atol=1e-6, rtol=0)


def test_refuses_a_class_without_examples():
    with pytest.raises(ValueError, match="every class"):
        mean_output_by_class(torch.zeros(2, 3), torch.tensor([0, 1]))


class Lazy(dict):
    """Weights to which weak references are possible."""


def test_outputs_after_updates_are_computed_once_for_all_attacks(monkeypatch):
    examples = pool_of(TABLE, torch.float32)
    knowledge = Knowledge(TABLE.classes, MLP, examples)
    start = Lazy(initial_weights(MLP, Seed(0)))
    deltas = [Lazy(initial_weights(MLP, Seed(n))) for n in range(1, 4)]
    first = list(confusion_of_updates(start, deltas, knowledge))
    for delta, matrix in zip(deltas, first, strict=True):
        alone = confusion_of_model(apply_update(start, delta), knowledge)
        # Some processors round the products of several models otherwise than those of one.
        torch.testing.assert_close(matrix, alone, rtol=1e-5, atol=1e-6)
    # Another attack may ask about fewer updates, in another order.
    with monkeypatch.context() as patched:
        patched.setattr(confusion, "logits_of_updates", lambda *_: iter(()))
        again = list(confusion_of_updates(start, deltas[:0:-1], knowledge))
    assert all(map(torch.equal, again, first[:0:-1]))
    # What a caller does to a matrix changes no other's.
    again[0].zero_()
    (third,) = confusion_of_updates(start, deltas[2:], knowledge)
    assert torch.equal(third, first[2])
    # Other examples give other outputs.
    fewer = replace(knowledge, auxiliary=examples.take(torch.arange(1, len(examples))))
    (other,) = confusion_of_updates(start, deltas[2:], fewer)
    assert not torch.equal(other, third)


def test_finds_an_exact_solution():
    # (0.5, 0.3, 0.2) through a matrix of full rank.
    system = torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 3.0]]).double()
    goal = system @ torch.tensor([0.5, 0.3, 0.2]).double()
    assert solve_for_shares(system, goal).tolist() == pytest.approx([0.5, 0.3, 0.2], abs=1e-6)


def test_a_small_weight_of_the_sum_distorts_the_shares():
    # Least squares of (x - 0.1, y - 0.3, w (x + y - 1)) moves both x and y by
    # 0.6 w^2 / (1 + 2 w^2): 0.3 for a large w, and 0.2 for w = 1, where (0.3, 0.5), brought to
    # the sum 1, is (0.375, 0.625).
    system, goal = torch.eye(2, dtype=torch.float64), torch.tensor([0.1, 0.3]).double()
    assert solve_for_shares(system, goal).tolist() == pytest.approx([0.4, 0.6], abs=1e-5)
    light = solve_for_shares(system, goal, weight=1.0)
    assert light.tolist() == pytest.approx([0.375, 0.625])


def test_zero_equations_give_equal_shares():
    nothing, goal = torch.zeros(3, 2).double(), torch.ones(3).double()
    assert solve_for_shares(nothing, goal, weight=0.0).tolist() == [0.5, 0.5]


@given(seed=st.integers(0, 10**6), parts=st.integers(1, 6))
def test_no_other_shares_have_a_smaller_error(seed, parts):
    draws = Seed(seed)
    system, goal = torch.from_numpy(draws.numpy().normal(size=(4, parts + 1))).split(
        [parts, 1], 1
    )
    best = (system @ solve_for_shares(system, goal[:, 0]) - goal[:, 0]).norm()
    others = torch.from_numpy(draws.child("others").numpy().dirichlet([0.5] * parts, 100))
    missed = (others @ system.T - goal[:, 0]).norm(dim=1)
    # The row for the sum is next to an equality, and the sum brought to 1 afterwards.
    assert float(best) <= float(missed.min()) + 1e-4


@given(seed=st.integers(0, 10**6), parts=st.integers(1, 6))
def test_returns_shares_for_any_equations(seed, parts):
    draws = Seed(seed).generator()
    system = torch.randn(4, parts, generator=draws, dtype=torch.float64)
    shares = solve_for_shares(system, torch.randn(4, generator=draws, dtype=torch.float64))
    assert float(shares.min()) >= 0
    assert float(shares.sum()) == pytest.approx(1)
