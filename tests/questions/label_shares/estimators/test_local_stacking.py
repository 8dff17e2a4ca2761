"""Weights of estimates, overall and near a client."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.local_stacking import (
    FEWEST_NEIGHBOURS,
    LocalStacking,
    fit_local_stacking,
)


class TestOverallWeights:
    TRUE = torch.tensor([[0.7, 0.3], [0.2, 0.8]], dtype=torch.float64)

    def weights(self, *estimates: Tensor) -> list[float]:
        return fit_local_stacking(torch.stack(estimates), self.TRUE).overall.tolist()

    def test_opposite_errors_are_weighted_to_cancel(self):
        # Errors +0.1 e and -0.3 e: 3/4 * 0.1 = 1/4 * 0.3.
        error = torch.tensor([[0.1, -0.1], [-0.1, 0.1]], dtype=torch.float64)
        assert self.weights(self.TRUE + error, self.TRUE - 3 * error) == pytest.approx(
            [0.75, 0.25], abs=1e-4
        )

    def test_independent_errors_are_weighted_by_inverse_variance(self):
        # Errors of length 0.1 and 0.2 at a right angle: w = (1/0.01) / (1/0.01 + 1/0.04).
        one = torch.tensor([[0.1, 0.0], [0.0, 0.0]], dtype=torch.float64)
        other = torch.tensor([[0.0, 0.0], [0.0, 0.2]], dtype=torch.float64)
        assert self.weights(self.TRUE + one, self.TRUE + other) == pytest.approx(
            [0.8, 0.2], abs=1e-4
        )

    @given(st.integers(1, 8), st.integers(1, 20), st.integers(0, 10**6))
    def test_pooled_estimates_are_as_good_as_the_best_one(self, count, clients, seed):
        drawn = torch.from_numpy(Seed(seed).numpy().dirichlet([1.0] * 3, (count + 1, clients)))
        estimates, true = drawn[:count], drawn[count]
        weights = fit_local_stacking(estimates, true).overall
        assert float(weights.min()) >= 0
        assert float(weights.sum()) == pytest.approx(1)
        pooled = torch.einsum("e,evc->vc", weights, estimates)
        alone = (estimates - true).square().sum((1, 2))
        # The sum of 1 is one weighted row of the fit.
        assert float((pooled - true).square().sum()) <= float(alone.min()) + 1e-4


class TestLocalWeights:
    """One estimate is right for clients with even shares, the other for those of one label."""

    CLIENTS = 4 * FEWEST_NEIGHBOURS

    @pytest.fixture
    def stacking(self) -> LocalStacking:
        generator = Seed(3).numpy()
        even = torch.from_numpy(generator.dirichlet([30.0] * 3, self.CLIENTS // 2))
        skewed = torch.from_numpy(generator.dirichlet([30.0, 0.5, 0.5], self.CLIENTS // 2))
        shares = torch.cat((even, skewed))
        wrong = shares + torch.from_numpy(generator.normal(0, 0.05, shares.shape))
        is_even = torch.arange(self.CLIENTS)[:, None] < self.CLIENTS // 2
        estimates = torch.stack((shares.where(is_even, wrong), wrong.where(is_even, shares)))
        return fit_local_stacking(estimates, shares)

    def test_each_client_gets_the_estimate_that_is_right_for_its_neighbours(self, stacking):
        shares = torch.tensor([[0.4, 0.3, 0.3], [0.98, 0.01, 0.01]], dtype=torch.float64)
        wrong = shares + torch.tensor([0.01, -0.01, 0.0])
        first, second = torch.stack((shares[0], wrong[1])), torch.stack((wrong[0], shares[1]))
        pooled = stacking.pool(torch.stack((first, second)))
        torch.testing.assert_close(pooled, shares, atol=2e-4, rtol=0)
        assert 0.2 < float(stacking.overall[0]) < 0.8

    def test_the_weights_of_a_virtual_client_do_not_depend_on_its_own_truth(self):
        shares = torch.from_numpy(Seed(4).numpy().dirichlet([1.0] * 3, self.CLIENTS))
        noise = torch.from_numpy(Seed(5).numpy().normal(0, 0.05, (2, *shares.shape)))
        stacking = fit_local_stacking(shares + noise, shares)
        without = stacking.products.clone()
        without[7] = 1e6
        changed = LocalStacking(without, stacking.overall, stacking.imbalances)
        assert torch.equal(changed.weights_of_virtual()[7], stacking.weights_of_virtual()[7])
