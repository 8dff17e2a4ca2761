"""A Gaussian for each known user over a few independent numbers, with common variances."""

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
    """Variance components of some numbers that are assumed independent of each other.

    A number is the mean of its user + an effect of the device + an effect of the round, all
    three normal.

    Args:
        means: mean of each user, shrunk towards the mean of all (James and Stein); NaN for a
            number without known values.
        user_variance: variance between users.
        device_variance: variance between devices of a user.
        round_variance: variance between rounds of a device.

    """

    means: Float[Tensor, "users numbers"]
    user_variance: Float[Tensor, " numbers"]
    device_variance: Float[Tensor, " numbers"]
    round_variance: Float[Tensor, " numbers"]

    def log_likelihood_ratios(
        self, numbers: Float[Tensor, "updates numbers"]
    ) -> Float[Tensor, " users"]:
        """Return each user's log-likelihood ratio of a device's numbers against the population.

        A number that is missing from the device or from all known users contributes 0.
        """
        counts = numbers.isfinite().sum(0)
        observed = numbers.nanmean(0)
        within = self.device_variance + self.round_variance / counts.clamp(min=1)
        total = within + self.user_variance
        centre = self.means.nanmean(0)
        # A number without variance between users is not informative.
        is_informative = observed.isfinite() & centre.isfinite() & (self.user_variance > 0)
        of_user = _log_density(observed - self.means, within)
        of_anybody = _log_density(observed - centre, total)
        return torch.where(is_informative, of_user - of_anybody, 0.0).sum(1)


def fit_gaussian_users(
    numbers: Float[Tensor, "updates numbers"],
    users: Int[Tensor, " updates"],
    devices: Int[Tensor, " updates"],
    count: int,
) -> GaussianUsers:
    """Estimate the variance components by the method of moments, number by number.

    Args:
        numbers: numbers of updates of known users; NaN = missing.
        users: the user of each update, 0 to count - 1.
        devices: the device of each update; a device belongs to one user.
        count: number of users. A user without numbers gets the mean of all.

    """
    fits = [_fit_number(column, users, devices, count) for column in numbers.double().unbind(1)]
    return GaussianUsers(
        torch.stack([fit.means for fit in fits], 1)
        if fits
        else torch.zeros(count, 0, dtype=torch.float64),
        torch.tensor([fit.user_variance for fit in fits], dtype=torch.float64),
        torch.tensor([fit.device_variance for fit in fits], dtype=torch.float64),
        torch.tensor([fit.round_variance for fit in fits], dtype=torch.float64),
    )


@dataclass(frozen=True, slots=True)
class _NumberFit:
    """The variance components of one number."""

    means: Float[Tensor, " users"]
    user_variance: float
    device_variance: float
    round_variance: float


def _fit_number(
    numbers: Float[Tensor, " updates"],
    users: Int[Tensor, " updates"],
    devices: Int[Tensor, " updates"],
    count: int,
) -> _NumberFit:
    is_present = numbers.isfinite()
    numbers, users, devices = numbers[is_present], users[is_present], devices[is_present]
    if not len(numbers):
        return _NumberFit(torch.full((count,), nan, dtype=torch.float64), 0.0, 0.0, 0.0)
    device_ids = sorted(set(devices.tolist()))
    places = torch.tensor([device_ids.index(device) for device in devices.tolist()])
    rounds = places.bincount().double()
    device_means = torch.zeros(len(device_ids), dtype=torch.float64)
    device_means = device_means.index_add(0, places, numbers) / rounds
    device_users = torch.zeros(len(device_ids), dtype=torch.long).index_put((places,), users)
    device_counts = device_users.bincount(minlength=count).double()
    user_means = (
        torch.zeros(count, dtype=torch.float64).index_add(0, device_users, device_means)
        / device_counts
    )

    round_variance = _variance(numbers - device_means[places], len(numbers) - len(device_ids))
    known = device_counts > 0
    freedom = len(device_ids) - int(known.sum())
    device_variance = _variance(device_means - user_means[device_users], freedom)
    device_variance = max(0.0, device_variance - round_variance * float((1 / rounds).mean()))
    # The sampling variance of each user's mean.
    update_counts = torch.zeros(count, dtype=torch.float64).index_add(0, device_users, rounds)
    sampling_variance = device_variance / device_counts + round_variance / update_counts
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
    return _NumberFit(
        torch.where(known, shrunken, centre),
        user_variance,
        max(device_variance, MIN_DEVICE_VARIANCE_SHARE * user_variance),
        round_variance,
    )


def _variance(deviations: Tensor, freedom: int) -> float:
    """Return the variance; 0 without degrees of freedom."""
    return float(deviations.square().sum()) / freedom if freedom > 0 else 0.0


def _log_density(deviation: Tensor, variance: Tensor) -> Tensor:
    return -(deviation.square() / variance + variance.log()) / 2
