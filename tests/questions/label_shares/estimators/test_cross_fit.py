"""Cross-fitted networks and their out-of-sample estimates."""

import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.cross_fit import (
    CrossFit,
    fit_with_cross_fitting,
)
from overheard.simulation.auxiliary_logits import mean_softmax
from tests.linkage.share_readings import (
    CLASSES,
    CLIENTS,
    HALVES,
    ON_QUARTER,
    STEPS,
    draw_shares,
    informative_readings,
    mean_l1,
    noise_readings,
    outlying_readings,
    zero_readings,
)


@pytest.fixture(scope="module")
def fit() -> CrossFit:
    shares = draw_shares()
    return fit_with_cross_fitting(
        informative_readings(shares), shares, HALVES, ON_QUARTER, STEPS, Seed(2)
    )


class TestWhereReadingsTell:
    def test_both_kinds_of_network_find_out_of_sample_shares(self, fit):
        shares = draw_shares()
        uniform = float((shares - 1 / CLASSES).abs().sum(1).mean())
        assert mean_l1(fit.virtual_estimates[:3].mean(0), shares) < 0.35 * uniform
        for kind in fit.virtual_estimates[:2]:
            assert mean_l1(kind, shares) < 0.5 * uniform

    def test_the_final_networks_find_the_shares_of_unseen_clients(self, fit):
        fresh = torch.from_numpy(Seed(5).numpy().dirichlet([0.5] * CLASSES, CLIENTS))
        uniform = float((fresh - 1 / CLASSES).abs().sum(1).mean())
        told = fit.estimate_shares(informative_readings(fresh, seed=6))
        assert mean_l1(told[:3].mean(0), fresh) < 0.45 * uniform

    def test_one_kind_of_estimate_is_the_mean_output(self, fit):
        readings = informative_readings(draw_shares())
        expected = mean_softmax(readings.outputs).mean(1)
        assert torch.equal(fit.estimate_shares(readings)[3].float(), expected)
        assert torch.equal(fit.virtual_estimates[3].float(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_virtual_clients_are_estimated_from_quarters_of_the_other_half(fit, half):
    shares = draw_shares()
    changed = shares.clone()
    trained = (half == HALVES) & ON_QUARTER
    changed[trained] = shares[trained].roll(1, 1)
    # Shares of clients that train on whole halves are not learned for these estimates either.
    changed[~ON_QUARTER] = shares[~ON_QUARTER].roll(1, 1)
    fooled = fit_with_cross_fitting(
        informative_readings(shares), changed, HALVES, ON_QUARTER, STEPS, Seed(2)
    )
    same = (fooled.virtual_estimates[:3] == fit.virtual_estimates[:3]).all(2).all(0)
    assert torch.equal(same, half == HALVES)


@pytest.mark.slow
def test_without_information_it_is_no_better_than_the_mean():
    shares = draw_shares(alpha=1.0)
    fit = fit_with_cross_fitting(noise_readings(), shares, HALVES, ON_QUARTER, STEPS, Seed(2))
    guess = float((shares - shares.mean(0)).abs().sum(1).mean())
    assert mean_l1(fit.virtual_estimates[:3].mean(0), shares) > 0.97 * guess


@pytest.mark.slow
def test_equal_readings_give_equal_finite_shares():
    shares = draw_shares()
    fit = fit_with_cross_fitting(zero_readings(), shares, HALVES, ON_QUARTER, STEPS, Seed(2))
    told = fit.estimate_shares(zero_readings(2))
    assert bool(told.isfinite().all())
    assert torch.equal(told[:, 0], told[:, 1])
    assert bool(fit.virtual_estimates.isfinite().all())


def test_an_outlier_gets_finite_shares(fit):
    assert bool(fit.estimate_shares(outlying_readings()).isfinite().all())


@pytest.mark.slow
def test_uses_a_known_size():
    # Clients are large in the first class, small in the last; nothing else is read of them.
    shares = torch.eye(CLASSES).double()[torch.arange(CLIENTS) // 4 % CLASSES]
    log_sizes = 5.0 - shares.argmax(1).float()
    fit = fit_with_cross_fitting(
        zero_readings(log_sizes=log_sizes), shares, HALVES, ON_QUARTER, 2 * STEPS, Seed(2)
    )
    # All alike, which is all that one can say without sizes, misses by 4/3.
    assert mean_l1(fit.virtual_estimates[:3].mean(0), shares) < 0.7


def test_restoring_from_tensors_is_exact(fit):
    again = CrossFit.from_tensors(fit.tensors())
    assert torch.equal(again.virtual_estimates, fit.virtual_estimates)
    assert torch.equal(
        again.estimate_shares(noise_readings(7)), fit.estimate_shares(noise_readings(7))
    )


def test_refuses_a_half_with_one_client_on_a_quarter():
    on_quarter = torch.tensor([False, False, True, True, True])
    with pytest.raises(ValueError, match="2 virtual clients"):
        fit_with_cross_fitting(
            zero_readings(5), draw_shares()[:5], torch.arange(5) % 2, on_quarter, STEPS, Seed(2)
        )
