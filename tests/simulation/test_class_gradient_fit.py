"""Factors of a client with one full-batch step, which the last layer reveals exactly.

An example of class c is the unit vector of c, and held-out examples are the client's own. One
step of rate r then changes the last layer by r * (sum over c of share_c * gradient_c).
"""

from collections.abc import Mapping, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.simulation.class_gradient_fit import (
    JOINT_RIDGE,
    ROW_RIDGE,
    ClassGradientFit,
    common_factors,
    row_factors,
)
from overheard.simulation.probe import ProbeContext

CLASSES = 3
BLANK = {"0.weight": torch.zeros(3, 3)}
SHARES = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3, bias=False))


def linear_with_bias() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3))


def deep() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3))


def units(counts: Sequence[int]) -> Examples:
    labels = torch.repeat_interleave(torch.arange(3), torch.tensor(counts))
    return Examples(torch.eye(3)[labels], labels)


def cloud(counts: Sequence[int]) -> Examples:
    labels = torch.repeat_interleave(torch.arange(3), torch.tensor(counts))
    noise = torch.randn(len(labels), 5, generator=Seed(1).generator())
    return Examples(2 * torch.eye(3, 5)[labels] + noise, labels)


def context_of(build, start: Mapping[str, Tensor], held_out: Examples) -> ProbeContext:
    return ProbeContext(0, start, build, 3, held_out, held_out, None, Seed(0), "cpu")


def step(build, start, pool: Examples, rate: float) -> dict[str, Tensor]:
    """Return the update of a client of this pool after one full-batch step."""
    members = [ClientTask("client/0", torch.arange(len(pool)))]
    recipe = Recipe(rate=rate, epochs=1, batch=1000)
    (trained,) = train_cohort(build, start, pool, members, recipe, seed=Seed(0), round=0)
    return dict(trained.delta)


def read(build, start, pool: Examples, rate: float) -> Tensor:
    """Return the reading of that client, with its own examples as held-out ones."""
    return ClassGradientFit().read(
        context_of(build, start, pool), [step(build, start, pool, rate)]
    )[0]


class TestOneStep:
    def test_common_factors_are_the_rate_times_the_shares(self):
        # Gradients of different classes are in different columns, so they are orthogonal, of
        # equal square length (2/3)^2 + 2 (1/3)^2: a ridge of 0.001 shrinks factors by 0.1 %.
        factors = common_factors(read(linear, BLANK, units((5, 3, 2)), 0.5))[0]
        expected = 0.5 * SHARES / (1 + JOINT_RIDGE)
        torch.testing.assert_close(factors.double(), expected, atol=1e-6, rtol=0)

    def test_factors_of_a_row_are_the_rate_times_the_shares_too(self):
        # The gradient of class k on row k is 2/3 e_k, that of another class c is -1/3 e_c:
        # squares 4/9 and 1/9. The ridge is 0.01 of their mean 2/9: 0.5 % of 4/9, 2 % of 1/9.
        at_start = row_factors(read(linear, BLANK, units((5, 3, 2)), 0.5))[0]
        shrink = torch.full((3, 3), 1 + 2 * ROW_RIDGE, dtype=torch.float64)
        shrink.fill_diagonal_(1 + ROW_RIDGE / 2)
        expected = 0.5 * SHARES[:, None] / shrink
        torch.testing.assert_close(at_start.double(), expected, atol=1e-6, rtol=0)

    def test_a_bias_is_fitted_too(self):
        # Inner products of gradients are 5/3 - 1/3 for equal, -1/3 for different classes. The
        # sum of the factors shrinks by 0.001 (4/3) / (2/3), and the part that sums to 0 by
        # 0.001 (4/3) / (5/3).
        start = {"0.weight": torch.zeros(3, 3), "0.bias": torch.zeros(3)}
        factors = common_factors(read(linear_with_bias, start, units((5, 3, 2)), 0.5))[0]
        expected = 0.5 * (
            1 / 3 / (1 + 2 * JOINT_RIDGE) + (SHARES - 1 / 3) / (1 + 0.8 * JOINT_RIDGE)
        )
        torch.testing.assert_close(factors.double(), expected, atol=1e-6, rtol=0)

    def test_mean_gradients_of_a_short_step_are_those_at_the_broadcast(self):
        # A step of rate r changes the gradients by about r of their size.
        short = read(linear, BLANK, units((5, 3, 2)), 1e-3)
        at_start, in_middle, _ = row_factors(short)
        torch.testing.assert_close(in_middle, at_start, rtol=2e-3, atol=0)
        start, middle = common_factors(short)
        torch.testing.assert_close(middle, start, rtol=2e-3, atol=0)

    def test_mean_gradients_of_a_long_step_are_smaller_and_factors_larger(self):
        # Descent reduces the errors, and so the gradients at the client's model.
        start, middle = common_factors(read(linear, BLANK, units((5, 3, 2)), 3.0))
        assert bool((middle > 1.1 * start).all())

    def test_products_are_the_factors_times_the_squares_of_the_gradients(self):
        products = row_factors(read(linear, BLANK, units((5, 3, 2)), 1e-3))[2]
        # 1e-3 * share * 4/9 for the class itself, * 1/9 for another.
        squares = torch.full((3, 3), 1 / 9, dtype=torch.float64)
        squares.fill_diagonal_(4 / 9)
        expected = 1e-3 * SHARES[:, None] * squares
        torch.testing.assert_close(products.double(), expected, rtol=2e-3, atol=0)

    @given(
        st.tuples(*[st.integers(1, 20)] * 3),
        st.lists(st.floats(-1, 1, width=32), min_size=9, max_size=9),
    )
    def test_recovers_shares_for_any_broadcast_and_any_counts(self, counts, numbers):
        # Squares of gradients are d_c = |e_c - p|^2; the ridge takes off 0.001 mean d / d_c.
        # Weights of up to 1 leave p_c <= e^2 / (e^2 + 2) = 0.79, so that d_c >= 0.21^2 * 1.5
        # = 0.066, and d <= 2: at most 3 %.
        start = {"0.weight": torch.tensor(numbers).reshape(3, 3)}
        factors = common_factors(read(linear, start, units(counts), 0.5))[0]
        true = 0.5 * torch.tensor(counts) / sum(counts)
        torch.testing.assert_close(factors, true, rtol=0.035, atol=0)

    def test_recovers_shares_from_examples_that_all_differ(self):
        # Gradients are far from orthogonal; the ridge of 0.1 % changes factors by a few %.
        start = initial_weights(deep, Seed(2))
        factors = common_factors(read(deep, start, cloud((30, 20, 10)), 0.01))[0]
        expected = 0.01 * torch.tensor([3.0, 2.0, 1.0]) / 6
        torch.testing.assert_close(factors, expected, rtol=0.1, atol=0)


@pytest.mark.parametrize("build", [linear, linear_with_bias])
def test_an_update_of_zeros_is_read_as_zeros(build):
    start = initial_weights(build, Seed(3))
    zeros = {name: torch.zeros_like(weight) for name, weight in start.items()}
    rows = ClassGradientFit().read(context_of(build, start, units((2, 2, 2))), [zeros])
    assert rows.shape == (1, 3 * CLASSES + 2, CLASSES)
    assert bool((rows == 0).all())


@settings(max_examples=10)
@given(st.permutations(range(3)))
def test_permuting_classes_permutes_the_reading(order):
    start, pool = initial_weights(deep, Seed(2)), cloud((12, 8, 4))
    delta = step(deep, start, pool, 0.5)
    new = torch.tensor(order)  # new class i is old class order[i]
    last = {"2.weight", "2.bias"}

    def renamed(weights):
        return {name: w[new] if name in last else w for name, w in weights.items()}

    other = Examples(pool.inputs, new.argsort()[pool.labels])
    before = ClassGradientFit().read(context_of(deep, start, pool), [delta])
    after = ClassGradientFit().read(context_of(deep, renamed(start), other), [renamed(delta)])
    pairs = row_factors(before)[..., new, :][..., new]
    torch.testing.assert_close(row_factors(after), pairs, rtol=1e-4, atol=1e-6)
    common = common_factors(before)[..., new]
    torch.testing.assert_close(common_factors(after), common, rtol=1e-4, atol=1e-6)


def test_a_class_without_held_out_examples_has_factor_zero():
    delta = step(linear, BLANK, units((5, 3, 2)), 0.5)
    rows = ClassGradientFit().read(context_of(linear, BLANK, units((4, 4, 0))), [delta])
    assert common_factors(rows)[0, :, 2].tolist() == [0, 0]
    # Two of three gradients are left, so the mean square in the ridge is two thirds.
    expected = 0.5 * SHARES[:2] / (1 + JOINT_RIDGE * 2 / 3)
    torch.testing.assert_close(
        common_factors(rows)[0, 0, :2].double(), expected, rtol=1e-5, atol=0
    )


@pytest.mark.parametrize("margin", [30.0, 100.0, 1000.0])
def test_readings_of_a_model_certain_of_all_examples_are_finite(margin):
    # Gradients are e^-margin, but the change is not: noise, or a client with other examples.
    start = {"0.weight": margin * torch.eye(3)}
    noise = {"0.weight": torch.randn(3, 3, generator=Seed(4).generator())}
    rows = ClassGradientFit().read(context_of(linear, start, units((2, 2, 2))), [noise])
    assert bool(rows.isfinite().all())
