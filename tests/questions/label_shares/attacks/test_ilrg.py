"""The recovered system in cases where it is exact."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.recipe import Recipe
from overheard.learning.last_layer import LastLayer
from overheard.learning.mean_gradient import LastLayerGradients
from overheard.questions.label_shares.attacks.ilrg import Ilrg, solve_shares
from tests.runs.one_step import (
    KNOWLEDGE,
    ZERO_WEIGHTS,
    infer_shares,
    make_view,
    train_step,
)

LAYER = LastLayer("0.weight", "0.bias")
COUNTS = st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any)


@pytest.mark.slow
@given(
    COUNTS,
    st.lists(st.floats(-2, 2), min_size=6, max_size=6),
    st.floats(0.1, 3),
    st.floats(0, 3),
)
def test_recovers_the_counts_of_any_model_if_features_are_equal(counts, weights, first, second):
    # dW_c = db_c h for every class, so e_k = h, and P_k is the answer p to it: db = p - n / K.
    shares = torch.tensor(counts).double() / sum(counts)
    weight = torch.tensor(weights, dtype=torch.float64).view(3, 2)
    features = torch.tensor([first, second], dtype=torch.float64)
    bias = torch.tensor([0.3, 0.0, -0.2], dtype=torch.float64)
    gradient = (weight @ features + bias).softmax(0) - shares
    start = {"0.weight": weight, "0.bias": bias}
    gradients = of_one_client(torch.outer(gradient, features), gradient)
    found = solve_shares(gradients, start, LAYER)[0]
    torch.testing.assert_close(found, shares, atol=1e-5, rtol=0)


def test_negative_counts_become_0():
    # P_k = 1/3, so n_c / K = 1/3 - db_c = (1, 1/3, -1/3): what is left is 3/4 and 1/4.
    bias = torch.tensor([-2.0, 0.0, 2.0]).double() / 3
    gradients = of_one_client(torch.zeros(3, 3).double(), bias)
    (shares,) = solve_shares(gradients, ZERO_WEIGHTS, LAYER).tolist()
    assert shares == pytest.approx([0.75, 0.25, 0])


def test_a_client_without_a_usable_update_gets_even_shares_beside_others():
    bias = torch.tensor([-2.0, 0.0, 2.0]).double() / 3
    two = LastLayerGradients(
        torch.zeros(2, 3, 3).double(),
        torch.stack([bias, torch.full_like(bias, torch.nan)]),
        torch.tensor([True, False]),
    )
    shares = solve_shares(two, ZERO_WEIGHTS, LAYER).tolist()
    assert shares == [pytest.approx([0.75, 0.25, 0]), pytest.approx([1 / 3] * 3)]


def of_one_client(weight, bias):
    return LastLayerGradients(weight[None], bias[None], torch.tensor([True]))


class TestHiddenSize:
    def test_is_assumed_if_steps_depend_on_it(self):
        # Batches of 4: 8 examples are taken to make 2 steps, each half as long.
        knowledge = replace(KNOWLEDGE, recipe=Recipe(rate=0.5, epochs=1, batch=4))
        shares = infer_shares(
            Ilrg(assumed_examples=8), make_view(train_step((5, 3, 0)), None), knowledge
        )
        # n_c / K = 1/3 - (1/3 - n_c / 8) / 2 = 1/6 + n_c / 16.
        assert shares == pytest.approx([1 / 6 + 5 / 16, 1 / 6 + 3 / 16, 1 / 6])


def test_a_broadcast_that_is_not_finite_gives_even_shares():
    broken = {name: torch.full_like(weight, torch.nan) for name, weight in ZERO_WEIGHTS.items()}
    assert infer_shares(Ilrg(), make_view(train_step((5, 3, 0)), 8, broken)) == pytest.approx(
        [1 / 3] * 3
    )
