"""A Gaussian for each known user over a few independent numbers, all of one variance."""

from dataclasses import dataclass
from math import nan
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

LEAST_LASTING = 0.05
"""Of the variance between users, by which two sets of examples of one user are taken to differ
at least: where each user has one device, nothing known tells it."""

ROUNDING = 1e-20
"""Of the square of the largest number, below which a variance is none."""


@final
@dataclass(frozen=True, slots=True)
class UsersApart:
    """How users differ in some numbers, each of them taken to be independent of the others.

    A number is mean of its user + what sets one device of the user apart + what sets one round
    apart, all three normal.

    Args:
        means: of each user, drawn in towards the mean of all as far as chance may have set it
            off (James and Stein's shrinkage); NaN for a number that is known of nobody.
        between: variance of users.
        lasting: variance of a user's devices.
        fleeting: variance of a device's rounds.

    """

    means: Float[Tensor, "users numbers"]
    between: Float[Tensor, " numbers"]
    lasting: Float[Tensor, " numbers"]
    fleeting: Float[Tensor, " numbers"]

    def evidence(self, numbers: Float[Tensor, "updates numbers"]) -> Float[Tensor, " users"]:
        """For each user, log of how much likelier a device's numbers are than of anybody.

        A number that the device, or nobody known, tells speaks for nobody.
        """
        times = numbers.isfinite().sum(0)
        found = numbers.nanmean(0)
        own = self.lasting + self.fleeting / times.clamp(min=1)
        anybody = own + self.between
        centre = self.means.nanmean(0)
        # Without spread between users there is nothing to tell them apart by.
        tells = found.isfinite() & centre.isfinite() & (self.between > 0)
        near = _log_density(found - self.means, own) - _log_density(found - centre, anybody)
        return torch.where(tells, near, 0.0).sum(1)


def learn_users_apart(
    numbers: Float[Tensor, "updates numbers"],
    users: Int[Tensor, " updates"],
    devices: Int[Tensor, " updates"],
    count: int,
) -> UsersApart:
    """Take the variances apart by the method of moments, number by number.

    Args:
        numbers: of updates of known users; NaN where one is not told.
        users: whose each is, 0 to count - 1.
        devices: on which device each was made; a device is of one user.
        count: of users. One of whom nothing is told has the mean of all.

    """
    each = [_apart(column, users, devices, count) for column in numbers.double().unbind(1)]
    return UsersApart(
        torch.stack([one.means for one in each], 1)
        if each
        else torch.zeros(count, 0, dtype=torch.float64),
        torch.tensor([one.between for one in each], dtype=torch.float64),
        torch.tensor([one.lasting for one in each], dtype=torch.float64),
        torch.tensor([one.fleeting for one in each], dtype=torch.float64),
    )


@dataclass(frozen=True, slots=True)
class _Apart:
    """The same of one number."""

    means: Float[Tensor, " users"]
    between: float
    lasting: float
    fleeting: float


def _apart(
    numbers: Float[Tensor, " updates"],
    users: Int[Tensor, " updates"],
    devices: Int[Tensor, " updates"],
    count: int,
) -> _Apart:
    there = numbers.isfinite()
    numbers, users, devices = numbers[there], users[there], devices[there]
    if not len(numbers):
        return _Apart(torch.full((count,), nan, dtype=torch.float64), 0.0, 0.0, 0.0)
    names = sorted(set(devices.tolist()))
    places = torch.tensor([names.index(device) for device in devices.tolist()])
    rounds = places.bincount().double()
    of_devices = torch.zeros(len(names), dtype=torch.float64)
    of_devices = of_devices.index_add(0, places, numbers) / rounds
    owners = torch.zeros(len(names), dtype=torch.long).index_put((places,), users)
    had = owners.bincount(minlength=count).double()
    of_users = torch.zeros(count, dtype=torch.float64).index_add(0, owners, of_devices) / had

    fleeting = _variance(numbers - of_devices[places], len(numbers) - len(names))
    known = had > 0
    spare = len(names) - int(known.sum())
    lasting = _variance(of_devices - of_users[owners], spare)
    lasting = max(0.0, lasting - fleeting * float((1 / rounds).mean()))
    # How far chance may set the mean of each user off.
    heard = torch.zeros(count, dtype=torch.float64).index_add(0, owners, rounds)
    chance = lasting / had + fleeting / heard
    centre = of_users[known].mean()
    spread = _variance(of_users[known] - centre, int(known.sum()) - 1)
    between = max(0.0, spread - float(chance[known].mean()))
    # A spread that is but rounding is none.
    between = between if between > ROUNDING * float(numbers.abs().max()) ** 2 else 0.0
    trust = between / (between + chance) if between else torch.zeros_like(chance)
    drawn_in = centre + trust * (of_users - centre)
    return _Apart(
        torch.where(known, drawn_in, centre),
        between,
        max(lasting, LEAST_LASTING * between),
        fleeting,
    )


def _variance(deviations: Tensor, freedom: int) -> float:
    """0 where nothing is left to tell it by."""
    return float(deviations.square().sum()) / freedom if freedom > 0 else 0.0


def _log_density(off: Tensor, variance: Tensor) -> Tensor:
    return -(off.square() / variance + variance.log()) / 2
