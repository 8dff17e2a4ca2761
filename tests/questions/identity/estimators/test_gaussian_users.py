"""Gaussians of known users."""

from math import log, nan

import pytest
import torch

from overheard.questions.identity.estimators.gaussian_users import (
    MIN_DEVICE_VARIANCE_SHARE,
    fit_gaussian_users,
)


def learn(numbers, users, devices=None, count=None):
    column = torch.tensor(numbers, dtype=torch.float64)[:, None]
    devices = users if devices is None else devices
    return fit_gaussian_users(
        column, torch.tensor(users), torch.tensor(devices), count or max(users) + 1
    )


def row(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)[:, None]


class TestFitGaussianUsers:
    def test_estimates_the_variance_components(self):
        # User 0: devices 0 (rounds 0, 2: mean 1) and 1 (rounds 2, 4: mean 3): mean 2.
        # User 1: devices 2 (10, 12: mean 11) and 3 (12, 14: mean 13): mean 12.
        # Rounds: 8 deviations of 1, 8 - 4 degrees: 2. Devices around users: 4 deviations of 1,
        # 4 - 2 degrees: 2, of which 2 / 2 rounds = 1 is from rounds: devices 1.
        # Users: mean 7, 2 deviations of 5, 1 degree: 50, of which 1 / 2 + 2 / 4 = 1 is chance.
        apart = learn([0, 2, 2, 4, 10, 12, 12, 14], [0] * 4 + [1] * 4, [0, 0, 1, 1, 2, 2, 3, 3])
        assert float(apart.round_variance) == pytest.approx(2)
        assert float(apart.user_variance) == pytest.approx(49)
        # At least a twentieth of 49.
        assert float(apart.device_variance) == pytest.approx(49 * MIN_DEVICE_VARIANCE_SHARE)
        # The means are shrunk to 7 -+ 5 * 49 / 50.
        assert apart.means[:, 0].tolist() == pytest.approx([2.1, 11.9])

    def test_users_who_differ_only_by_chance_have_no_variance(self):
        # Means 0 and 0.5, and rounds that lie 2 apart: variance between 0.125, chance 1.
        apart = learn([-1, 1, -0.5, 1.5], [0, 0, 1, 1])
        assert float(apart.user_variance) == 0
        assert apart.means[:, 0].tolist() == [0.25, 0.25]
        assert apart.log_likelihood_ratios(row(1.0)).tolist() == [0, 0]

    def test_without_numbers_all_users_have_equal_evidence(self):
        nothing = torch.empty(4, 0, dtype=torch.float64)
        apart = fit_gaussian_users(nothing, torch.arange(4), torch.arange(4), 4)
        assert (
            apart.log_likelihood_ratios(torch.empty(1, 0, dtype=torch.float64)).tolist()
            == [0] * 4
        )

    def test_a_number_missing_from_all_known_users_is_ignored(self):
        apart = learn([nan, nan], [0, 1])
        assert apart.log_likelihood_ratios(row(3.0)).tolist() == [0, 0]


class TestLogLikelihoodRatios:
    def test_compare_each_user_with_the_population(self):
        # One round a user, no variance of rounds: users 50, devices 2.5, means 0 and 10.
        apart = learn([0, 10], [0, 1])
        # x = 0: for user 0, log N(0; 0, 2.5); for the population, log N(0; 5, 52.5).
        expected = -log(2.5) / 2 + (25 / 52.5 + log(52.5)) / 2
        assert float(apart.log_likelihood_ratios(row(0.0))[0]) == pytest.approx(expected)

    def test_rounds_average_out_only_the_variance_between_rounds(self):
        apart = learn([0, 8, 10, 18], [0, 0, 1, 1])
        once, often = (apart.log_likelihood_ratios(row(*[4.0] * times)) for times in (1, 1000))
        gaps = [float(each[0] - each[1]) for each in (once, often)]
        # The means differ by g. Users 50 - 16 = 34, devices 1.7, rounds 32: g^2 / 2 over
        # 1.7 + 32 with one round, over 1.7 with many.
        assert gaps[1] / gaps[0] == pytest.approx((1.7 + 32) / 1.7, rel=0.03)

    def test_a_missing_number_is_ignored(self):
        apart = learn([0, 1, 10, 11], [0, 0, 1, 1])
        assert apart.log_likelihood_ratios(row(nan)).tolist() == [0, 0]
        assert apart.log_likelihood_ratios(row()).tolist() == [0, 0]
        assert torch.equal(
            apart.log_likelihood_ratios(row(nan, 3.0)), apart.log_likelihood_ratios(row(3.0))
        )
