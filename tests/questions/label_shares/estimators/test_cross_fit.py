"""Cross-fitted networks and their out-of-sample estimates."""

import pytest
import torch

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.cross_fit import (
    CrossFit,
    fit_with_cross_fitting,
)
from tests.linkage.share_readings import (
    CLASSES,
    CLIENTS,
    HALVES,
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
    return fit_with_cross_fitting(informative_readings(shares), shares, HALVES, STEPS, Seed(2))


class TestWhereReadingsTell:
    def test_both_kinds_of_network_find_out_of_sample_shares(self, fit):
        shares = draw_shares()
        uniform = float((shares - 1 / CLASSES).abs().sum(1).mean())
        assert mean_l1(fit.virtual_estimates.mean(0), shares) < 0.35 * uniform
        for kind in fit.virtual_estimates[:2]:
            assert mean_l1(kind, shares) < 0.5 * uniform

    def test_every_network_finds_the_shares_of_unseen_clients(self, fit):
        fresh = torch.from_numpy(Seed(5).numpy().dirichlet([0.5] * CLASSES, CLIENTS))
        uniform = float((fresh - 1 / CLASSES).abs().sum(1).mean())
        told = fit.estimate_shares(
            informative_readings(fresh, seed=6)
        )  # (kinds, networks, clients, classes)
        for network in range(told.shape[1]):
            assert mean_l1(told[:, network].mean(0), fresh) < 0.45 * uniform

    def test_virtual_estimates_come_from_the_other_half(self, fit):
        told = fit.estimate_shares(informative_readings(draw_shares()))
        for half in (0, 1):
            own = half == HALVES
            assert torch.equal(fit.virtual_estimates[:, own], told[:, 1 - half, own])
            assert not torch.equal(fit.virtual_estimates[:, own], told[:, half, own])


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_estimates_do_not_depend_on_the_clients_own_shares(fit, half):
    shares = draw_shares()
    own = half == HALVES
    others = shares.clone()
    others[own] = shares[own].roll(1, 1)
    fooled = fit_with_cross_fitting(
        informative_readings(shares), others, HALVES, STEPS, Seed(2)
    )
    assert torch.equal(fooled.virtual_estimates[:, own], fit.virtual_estimates[:, own])
    assert not torch.equal(fooled.virtual_estimates[:, ~own], fit.virtual_estimates[:, ~own])


@pytest.mark.slow
def test_without_information_it_is_no_better_than_the_mean():
    shares = draw_shares(alpha=1.0)
    fit = fit_with_cross_fitting(noise_readings(), shares, HALVES, STEPS, Seed(2))
    guess = float((shares - shares.mean(0)).abs().sum(1).mean())
    assert mean_l1(fit.virtual_estimates.mean(0), shares) > 0.97 * guess


@pytest.mark.slow
def test_equal_readings_give_equal_finite_shares():
    shares = draw_shares()
    fit = fit_with_cross_fitting(zero_readings(), shares, HALVES, STEPS, Seed(2))
    told = fit.estimate_shares(zero_readings(2))
    assert bool(told.isfinite().all())
    assert torch.equal(told[:, :, 0], told[:, :, 1])
    assert bool(fit.virtual_estimates.isfinite().all())


def test_an_outlier_gets_finite_shares(fit):
    assert bool(fit.estimate_shares(outlying_readings()).isfinite().all())


@pytest.mark.slow
def test_uses_a_known_size():
    # Clients are large in the first class, small in the last; nothing else is read of them.
    shares = torch.eye(CLASSES).double()[torch.arange(CLIENTS) // 2 % CLASSES]
    log_sizes = 5.0 - shares.argmax(1).float()
    fit = fit_with_cross_fitting(
        zero_readings(log_sizes=log_sizes), shares, HALVES, 2 * STEPS, Seed(2)
    )
    # All alike, which is all that one can say without sizes, misses by 4/3.
    assert mean_l1(fit.virtual_estimates.mean(0), shares) < 0.7


def test_restoring_from_tensors_is_exact(fit):
    again = CrossFit.from_tensors(fit.tensors())
    assert torch.equal(again.virtual_estimates, fit.virtual_estimates)
    assert torch.equal(
        again.estimate_shares(noise_readings(7)), fit.estimate_shares(noise_readings(7))
    )


def test_refuses_a_half_with_one_client():
    shares = draw_shares()[:3]
    with pytest.raises(ValueError, match="2 virtual clients"):
        fit_with_cross_fitting(
            zero_readings(3), shares, torch.tensor([0, 0, 1]), STEPS, Seed(2)
        )
