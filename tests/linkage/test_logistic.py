import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from overheard.core.seeds import Seed
from overheard.linkage.logistic import fit_conditional_logit, fit_logistic


class TestLogit:
    def test_agrees_with_scipy(self) -> None:
        generator = Seed(0).generator()
        statistic = torch.cat(
            [torch.randn(60, generator=generator), 1.5 + torch.randn(15, generator=generator)]
        ).double()
        holds = torch.arange(75) >= 60
        found = fit_logistic(statistic, holds)
        scaled = (statistic / statistic.std()).numpy()
        signs = np.where(holds.numpy(), 1, -1)
        # Both outcomes weigh as 37.5 cases do.
        weights = np.where(holds.numpy(), 37.5 / 15, 37.5 / 60)

        def loss(fit) -> float:
            apart = np.logaddexp(0, -signs * (fit[0] + fit[1] * scaled))
            return float((weights * apart).sum() + fit[1] ** 2 / 2)

        level, slope = minimize(loss, [0.0, 0.0], tol=1e-10).x
        assert found.intercept == pytest.approx(level, abs=2e-3)
        assert found.slope * float(statistic.std()) == pytest.approx(slope, abs=2e-3)

    @pytest.mark.parametrize("holds", [True, False])
    def test_is_a_half_if_only_one_outcome_was_seen(self, holds) -> None:
        fitted = fit_logistic(
            torch.tensor([1.0, 2.0, -torch.inf]), torch.tensor([holds] * 2 + [not holds])
        )
        assert fitted.probability(1.0) == 0.5

    def test_the_slope_is_finite_for_separable_outcomes(self) -> None:
        fitted = fit_logistic(
            torch.tensor([0.0, 0, 1, 1]), torch.tensor([False, False, True, True])
        )
        assert 0 < fitted.probability(0.0) < 0.5 < fitted.probability(1.0) < 1


EVERYONE = torch.ones(2, dtype=torch.bool)


def cosines(*cases: tuple[float, float]) -> torch.Tensor:
    """Cosines of each case with two users, in one space."""
    return torch.tensor(cases).double()[:, :, None]


class TestFitWeights:
    def test_one_weight_agrees_with_a_calculation_by_hand(self) -> None:
        # Nearer by 1 to the true one in three of four cases: the likeliest weight has
        # 1 / (1 + exp(-w)) = 3/4, so w = log 3.
        features = cosines((1.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, 1.0))
        found = fit_conditional_logit([(features, torch.tensor([0, 1, 0, 0]), EVERYONE)])
        assert float(found) == pytest.approx(float(torch.tensor(3.0).log()), abs=1e-3)

    def test_two_weights_agree_with_a_grid_search(self) -> None:
        generator = Seed(3).generator()
        users = torch.randint(3, (200,), generator=generator)
        features = torch.randn(200, 3, 2, generator=generator, dtype=torch.float64)
        features[torch.arange(200), users] += torch.tensor([1.0, 0.4]).double()
        able = torch.ones(3, dtype=torch.bool)
        found = fit_conditional_logit([(features, users, able)])
        grid = torch.cartesian_prod(torch.linspace(0, 2, 81), torch.linspace(0, 2, 81)).double()
        scores = torch.einsum("cus,gs->gcu", features, grid)
        likely = scores.log_softmax(2)[:, torch.arange(200), users].sum(1)
        assert found.tolist() == pytest.approx(grid[int(likely.argmax())].tolist(), abs=0.025)

    def test_unknown_users_and_non_candidates_do_not_change_weights(self) -> None:
        plain = cosines((1.0, 0.0), (0.0, 1.0), (0.0, 1.0))
        one = fit_conditional_logit([(plain, torch.tensor([0, 1, 0]), EVERYONE)])
        more = torch.cat([plain, torch.full((3, 1, 1), 5.0).double()], 1)
        strange = torch.cat([more, torch.full((1, 3, 1), -9.0).double()])
        able = torch.tensor([True, True, False])
        other = fit_conditional_logit([(strange, torch.tensor([0, 1, 0, -1]), able)])
        assert float(one) == pytest.approx(float(other), abs=1e-6)

    @pytest.mark.slow
    @given(st.integers(0, 999))
    def test_weights_are_finite_and_not_negative(self, seed) -> None:
        generator = Seed(seed).generator()
        features = torch.randn(6, 2, 3, generator=generator, dtype=torch.float64)
        users = torch.randint(2, (6,), generator=generator)
        found = fit_conditional_logit([(features, users, EVERYONE)])
        assert bool(found.isfinite().all())
        assert bool((found >= 0).all())
