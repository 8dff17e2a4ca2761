"""The probability of each source of a record, by evidence whose scale is fitted to itself."""

from dataclasses import dataclass
from math import log
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

ITERATIONS = 60
"""Steps of the fit, after which its numbers no longer change in the third decimal."""

FIRST_OUTSIDE = 0.5
"""The share of records of no client, before the fit."""

LEAST_OUTSIDE = 0.01
"""The share of records of no client, and of clients, is at least this."""

TINY = 1e-9
"""Added to variances, so that none is 0."""

MOST_STRENGTH = 10.0
"""The mean strength of a client is at most this many times the median client's. Strength grows
as an update shrinks, so one update of nearly zero would make all others look like noise."""

NORMAL_MEDIAN_SQUARE = 0.455
"""The median of the square of a standard normal number."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SourceOdds:
    """What evidence says of the source of each record.

    Args:
        log_odds: for each client and record, the log of the client's weight among them.
        nobody: the probability that no client holds it.

    """

    log_odds: Float[Tensor, "clients records"]
    nobody: Float[Tensor, " records"]


def fit_source_odds(
    fit: Float[Tensor, "clients records"],
    strength: Float[Tensor, "clients records"],
    prior: Float[Tensor, " clients"],
) -> SourceOdds:
    """Return the odds of sources for matched filters of each client and record.

    Let z = fit / sqrt(strength), and q = sqrt(strength) relative to its root mean square. If
    the client does not hold the record, z is normal with deviation t. If it holds it, m q is
    added, and m differs between records with deviation w, as clients train on some of them
    where the gradient has vanished already. Each record is held by one client, as likely as the
    prior says, or by none. The four numbers (the mean of m, w, t, the share of none) are those
    of the largest likelihood over all records and clients (EM: Dempster et al. 1977). So
    nothing is trained, and the odds fit the updates that were observed.

    Args:
        fit: how well the update of each client fits the gradient of each record.
        strength: the variance of the fit if the client does not hold the record.
        prior: the probability of each client, if one of them holds the record.

    """
    strength = strength.double().clamp(min=TINY * float(strength.max().clamp(min=TINY)))
    z = fit.double() / strength.sqrt()
    # About 1 where the client does not hold the record, so that no constant has a unit.
    z = z / (z.square().median() / NORMAL_MEDIAN_SQUARE).sqrt().clamp(min=TINY)
    of_client = strength.mean(1, keepdim=True)
    strength = strength * (MOST_STRENGTH * of_client.median() / of_client).clamp(max=1)
    relative = (strength / strength.mean()).sqrt()
    rest, mean = 1.0, max(1.0, float(z.amax(0).quantile(0.9)))
    spread, outside = (mean / 2) ** 2, FIRST_OUTSIDE
    log_prior = prior.double().log()[:, None]
    for _ in range(ITERATIONS):
        log_odds = _log_ratios(z, relative, mean, spread, rest) + log_prior
        nobody, held = _posterior(log_odds, outside).tensor_split([1])
        outside = float(nobody.mean())
        outside = min(max(outside, LEAST_OUTSIDE), 1 - LEAST_OUTSIDE)
        weights = held * relative / (rest + spread * relative.square())
        mean = max(0.0, float((weights * z).sum() / (weights * relative).sum().clamp(min=TINY)))
        # The effect of each record if the client holds it: its mean and variance.
        variance = 1 / (relative.square() / rest + 1 / (spread + TINY))
        effect = variance * (z * relative / rest + mean / (spread + TINY))
        count = held.sum().clamp(min=TINY)
        spread = float((held * ((effect - mean).square() + variance)).sum() / count)
        unexplained = (z - effect * relative).square() + variance * relative.square()
        rest = float(((1 - held) * z.square() + held * unexplained).mean()) + TINY
    log_odds = _log_ratios(z, relative, mean, spread, rest) + log_prior
    return SourceOdds(log_odds, _posterior(log_odds, outside)[0])


def _log_ratios(
    z: Float[Tensor, "clients records"],
    relative: Float[Tensor, "clients records"],
    mean: float,
    spread: float,
    rest: float,
) -> Float[Tensor, "clients records"]:
    """Return the log-likelihood ratio that a client holds a record."""
    variance = rest + spread * relative.square()
    ratios: Tensor = (
        (rest / variance).log() / 2
        - (z - mean * relative).square() / (2 * variance)
        + z.square() / (2 * rest)
    )
    return ratios


def _posterior(
    log_odds: Float[Tensor, "clients records"], outside: float
) -> Float[Tensor, "sources records"]:
    """Return the probability that no client holds each record, then that each client does."""
    nobody = torch.full_like(log_odds[:1], log(outside / (1 - outside)))
    return torch.cat((nobody, log_odds)).softmax(0)
