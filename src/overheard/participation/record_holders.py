"""Which client holds a record, from how well sums over varying cohorts fit its gradient."""

from dataclasses import dataclass
from math import log
from typing import final

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize

TINY = 1e-9

ITERATIONS = 100
"""Steps of the fit of holders; later ones change nothing in the third decimal."""

MEMORY = 10.0
"""Rounds after which what a record's fits have in common has fallen to a third (1/e). On tuning
seeds 5 and 20 give the same accuracy to .005; without any, it is .02 to .04 lower."""

DEGREES = 8.0
"""Degrees of freedom of Student's distribution of noise, as records differ in how noisy their
fits are. On tuning seeds 5 and 15 are the same."""

POWER = 0.5
"""Power of the relative strength that the effect of a holder grows with. In theory it is 1, but
records with large gradients are fitted worst by the covariance. On tuning seeds 0 and 1 have a
log loss that is .1 to .2 higher."""

EVEN_ODDS, PULL = 0.5, 0.5
"""The share of records of no client is pulled to even odds as by this many times the records.
Weak evidence says little of it: without a pull the probabilities of no client are worse than
even odds on tuning seeds."""

LOG_RANGE = (-12.0, 6.0)
"""Bounds of the logarithm of each variance of the noise."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class HolderOdds:
    """What sums say of the holder of each record.

    Args:
        log_ratios: for each client and record, the log-likelihood ratio that the client holds
            the record, against no client.
        nobody: for each record, the probability that no client holds it.

    """

    log_ratios: Float[np.ndarray, "clients records"]
    nobody: Float[np.ndarray, " records"]


def fit_holders(
    fit: Float[np.ndarray, "sums records"],
    strength: Float[np.ndarray, "sums records"],
    weights: Float[np.ndarray, "sums clients"],
    rounds: Int[np.ndarray, " sums"],
) -> HolderOdds:
    """Return the odds of holders, given matched filters of each sum and record.

    Let z = fit / sqrt(strength), a vector over the sums. If no client holds the record, z is
    noise with one covariance for all records. Its parts are what comes anew in each sum, what
    all sums have in common, and what each client's other records add to the sums that the
    client is in; of the latter two one part lasts and one fades (`MEMORY`). These five
    variances are those of the largest normal likelihood over all records (variance components:
    Henderson 1953). So a record that is merely like the data of a client raises the fits of its
    sums without counting as held.

    If client k holds the record, m q a_k is added: a_k are its weights in the sums, and q grows
    with the record's strength (`POWER`). The factor m differs between records. Noise has the
    scale of the record, so z follows Student's distribution (`DEGREES`). The mean and variance
    of m, and the share of records of no client, are fitted to all records without their names
    (EM: Dempster et al. 1977). Where fits do not go along with who took part, the effect is
    small, and clients are about as likely as each other. But a record that no client holds may
    be so like a record of one that it looks held.

    Args:
        fit: how well each sum fits the gradient of each record.
        strength: the variance of the fit where no client of the sum holds the record.
        weights: the weight of each client in each sum; 0 = not in it.
        rounds: the round of each sum.

    """
    strength = strength.clip(min=TINY * max(float(strength.max()), TINY))
    scores = fit / np.sqrt(strength)
    spread = float(np.median(np.abs(scores)))
    scores = scores / max(spread, TINY)  # so that no variance has a unit
    relative = (strength / strength.mean()) ** (POWER / 2)
    took_part = weights / np.mean(weights[weights > 0])
    whitening = _whitening(scores, took_part, rounds)
    noise = whitening @ scores
    products, squares = (np.empty((weights.shape[1], fit.shape[1])) for _ in range(2))
    for number, column in enumerate(took_part.T):
        sums = column != 0
        effect = whitening[:, sums] @ (relative[sums] * column[sums, None])
        products[number] = (effect * noise).sum(axis=0)
        squares[number] = (effect**2).sum(axis=0)
    return _fit_effect(products, squares + TINY, (noise**2).sum(axis=0), len(fit))


def _whitening(
    scores: Float[np.ndarray, "sums records"],
    took_part: Float[np.ndarray, "sums clients"],
    rounds: Int[np.ndarray, " sums"],
) -> Float[np.ndarray, "sums sums"]:
    """Return the inverse root of the covariance of noise, by its five parts."""
    sums, records = scores.shape
    alike = np.exp(-np.abs(np.subtract.outer(rounds, rounds)) / MEMORY)
    shared = took_part @ took_part.T
    parts = np.stack([np.eye(sums), shared, np.ones((sums, sums)), alike, alike * shared])
    moments = scores @ scores.T / records

    def unlikely(logs: np.ndarray) -> tuple[float, np.ndarray]:
        """Return minus twice the mean log likelihood, and its gradient."""
        variances = np.exp(logs)
        total = np.tensordot(variances, parts, 1)
        inverse = np.linalg.inv(total)
        slope = inverse - inverse @ moments @ inverse
        value = np.linalg.slogdet(total)[1] + (inverse * moments).sum()
        return float(value), variances * (parts * slope).sum(axis=(1, 2))

    size = float(np.trace(moments)) / sums
    clients = float((took_part**2).sum()) / sums
    of_client = 0.1 / max(1.0, clients)
    start = np.log(np.array([0.5, of_client, 0.1, 0.2, of_client]) * max(size, TINY))
    found = minimize(
        unlikely, start.clip(*LOG_RANGE), jac=True, method="L-BFGS-B", bounds=[LOG_RANGE] * 5
    )
    total = np.tensordot(np.exp(found.x), parts, 1)
    whitening: Float[np.ndarray, "sums sums"] = np.linalg.inv(np.linalg.cholesky(total))
    return whitening


def _fit_effect(
    products: Float[np.ndarray, "clients records"],
    squares: Float[np.ndarray, "clients records"],
    noise: Float[np.ndarray, " records"],
    sums: int,
) -> HolderOdds:
    """Return the odds under the effect that fits all records.

    Args:
        products: of the whitened effect of each client and the whitened scores.
        squares: of the whitened effect of each client.
        noise: squared length of the whitened scores of each record.
        sums: number of sums.

    """
    clients = len(products)
    mean = max(0.05, float(np.quantile((products / squares).max(axis=0), 0.9)))
    spread, outside = (mean / 2) ** 2, EVEN_ODDS
    for _ in range(ITERATIONS):
        ratios, heavy = _log_ratios(products, squares, noise, sums, mean, spread)
        nobody, held = _posterior(ratios, outside, clients)
        outside = (float(nobody.mean()) + PULL * EVEN_ODDS) / (1 + PULL)
        weights, count = held * heavy, max(float(held.sum()), TINY)
        widened = 1 + spread * squares
        mean = float((weights * products / widened).sum())
        mean = max(0.0, mean / max(float((weights * squares / widened).sum()), TINY))
        # The factor of each record if the client holds it: its mean and variance.
        variance = 1 / (squares + 1 / (spread + TINY))
        factor = variance * (products + mean / (spread + TINY))
        spread = float((weights * (factor - mean) ** 2 + held * variance).sum()) / count
    ratios, _ = _log_ratios(products, squares, noise, sums, mean, spread)
    return HolderOdds(ratios, _posterior(ratios, outside, clients)[0])


def _log_ratios(
    products: Float[np.ndarray, "clients records"],
    squares: Float[np.ndarray, "clients records"],
    noise: Float[np.ndarray, " records"],
    sums: int,
    mean: float,
    spread: float,
) -> tuple[Float[np.ndarray, "clients records"], Float[np.ndarray, "clients records"]]:
    """Return the log-likelihood ratios, and the precision of each record's noise if held."""
    widened = 1 + spread * squares
    explained = (spread * products**2 + 2 * mean * products - mean**2 * squares) / widened
    rest = DEGREES + (noise - explained).clip(min=TINY)
    ratios = -np.log(widened) / 2 - (DEGREES + sums) / 2 * np.log(rest / (DEGREES + noise))
    return ratios, (DEGREES + sums) / rest


def _posterior(
    ratios: Float[np.ndarray, "clients records"], outside: float, clients: int
) -> tuple[Float[np.ndarray, " records"], Float[np.ndarray, "clients records"]]:
    """Return the probability that no client holds each record, and that each client does."""
    nobody = np.full((1, ratios.shape[1]), log(outside / (1 - outside)))
    logs = np.concatenate((nobody, ratios - log(clients)))
    shares = np.exp(logs - logs.max(axis=0))
    shares /= shares.sum(axis=0)
    return shares[0], shares[1:]
