"""A normal distribution of a few features of updates for each known user.

The features count as independent, and all users share the variances.
"""

from dataclasses import dataclass
from math import nan
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

MIN_DEVICE_VARIANCE_SHARE = 0.05
"""Minimum variance between devices of one user, as a share of the variance between users. It
cannot be estimated if each user has one device."""

ROUNDING_TOLERANCE = 1e-20
"""Share of the squared largest number below which a variance counts as 0."""


@final
@dataclass(frozen=True, slots=True)
class GaussianUsers:
    """Means and variance components of features of updates.

    The value of a feature is the mean of its user + an effect of the device + an effect of the
    round, all three normal. A device is one client of a user. The features are assumed
    independent of each other.

    Args:
        means: mean of each user, shrunk towards the mean of all (James and Stein); NaN for a
            feature without known values.
        user_variance: variance between users.
        device_variance: variance between devices of a user.
        round_variance: variance between rounds of a device.

    """

    means: Float[Tensor, "users features"]
    user_variance: Float[Tensor, " features"]
    device_variance: Float[Tensor, " features"]
    round_variance: Float[Tensor, " features"]

    def log_likelihood_ratios(
        self, features: Float[Tensor, "updates features"]
    ) -> Float[Tensor, " users"]:
        """Return, for each user, how likely the features of one device are under this user.

        It is the logarithm of their likelihood under this user over that under all users. A
        feature that is missing from the device or from all known users contributes 0.
        """
        counts = features.isfinite().sum(0)
        observed = features.nanmean(0)
        within = self.device_variance + self.round_variance / counts.clamp(min=1)
        total = within + self.user_variance
        centre = self.means.nanmean(0)
        # A feature without variance between users is not informative.
        is_informative = observed.isfinite() & centre.isfinite() & (self.user_variance > 0)
        of_user = _log_density(observed - self.means, within)
        of_anybody = _log_density(observed - centre, total)
        return torch.where(is_informative, of_user - of_anybody, 0.0).sum(1)


def fit_gaussian_users(
    features: Float[Tensor, "updates features"],
    users: Int[Tensor, " updates"],
    devices: Int[Tensor, " updates"],
    user_count: int,
) -> GaussianUsers:
    """Estimate the variance components by the method of moments, feature by feature.

    Args:
        features: features of updates of known users; NaN = missing.
        users: the user of each update, 0 to count - 1.
        devices: the device of each update; a device belongs to one user.
        user_count: number of users. A user without updates gets the mean of all.

    """
    fits = [
        _fit_feature(column, users, devices, user_count)
        for column in features.double().unbind(1)
    ]
    return GaussianUsers(
        torch.stack([fit.means for fit in fits], 1)
        if fits
        else torch.zeros(user_count, 0, dtype=torch.float64),
        torch.tensor([fit.user_variance for fit in fits], dtype=torch.float64),
        torch.tensor([fit.device_variance for fit in fits], dtype=torch.float64),
        torch.tensor([fit.round_variance for fit in fits], dtype=torch.float64),
    )


@dataclass(frozen=True, slots=True)
class _FeatureFit:
    """The means and variance components of one feature."""

    means: Float[Tensor, " users"]
    user_variance: float
    device_variance: float
    round_variance: float


def _fit_feature(
    numbers: Float[Tensor, " updates"],
    users: Int[Tensor, " updates"],
    devices: Int[Tensor, " updates"],
    count: int,
) -> _FeatureFit:
    is_present = numbers.isfinite()
    numbers, users, devices = numbers[is_present], users[is_present], devices[is_present]
    if not len(numbers):
        return _FeatureFit(torch.full((count,), nan, dtype=torch.float64), 0.0, 0.0, 0.0)
    device_ids = sorted(set(devices.tolist()))
    device_index = torch.tensor([device_ids.index(device) for device in devices.tolist()])
    updates_by_device = device_index.bincount().double()
    device_means = torch.zeros(len(device_ids), dtype=torch.float64)
    device_means = device_means.index_add(0, device_index, numbers) / updates_by_device
    device_users = torch.zeros(len(device_ids), dtype=torch.long).index_put(
        (device_index,), users
    )
    devices_by_user = device_users.bincount(minlength=count).double()
    user_means = (
        torch.zeros(count, dtype=torch.float64).index_add(0, device_users, device_means)
        / devices_by_user
    )

    round_variance = _variance(
        numbers - device_means[device_index], len(numbers) - len(device_ids)
    )
    known = devices_by_user > 0
    degrees_of_freedom = len(device_ids) - int(known.sum())
    device_variance = _variance(device_means - user_means[device_users], degrees_of_freedom)
    device_variance = max(
        0.0, device_variance - round_variance * float((1 / updates_by_device).mean())
    )
    # The sampling variance of each user's mean.
    updates_by_user = torch.zeros(count, dtype=torch.float64).index_add(
        0, device_users, updates_by_device
    )
    sampling_variance = device_variance / devices_by_user + round_variance / updates_by_user
    centre = user_means[known].mean()
    observed_variance = _variance(user_means[known] - centre, int(known.sum()) - 1)
    user_variance = max(0.0, observed_variance - float(sampling_variance[known].mean()))
    # A variance within rounding error counts as 0.
    user_variance = (
        user_variance
        if user_variance > ROUNDING_TOLERANCE * float(numbers.abs().max()) ** 2
        else 0.0
    )
    weight = (
        user_variance / (user_variance + sampling_variance)
        if user_variance
        else torch.zeros_like(sampling_variance)
    )
    shrunken = centre + weight * (user_means - centre)
    return _FeatureFit(
        torch.where(known, shrunken, centre),
        user_variance,
        max(device_variance, MIN_DEVICE_VARIANCE_SHARE * user_variance),
        round_variance,
    )


def _variance(deviations: Tensor, degrees_of_freedom: int) -> float:
    """Return the variance; 0 without degrees of freedom."""
    return (
        float(deviations.square().sum()) / degrees_of_freedom if degrees_of_freedom > 0 else 0.0
    )


def _log_density(deviation: Tensor, variance: Tensor) -> Tensor:
    return -(deviation.square() / variance + variance.log()) / 2
