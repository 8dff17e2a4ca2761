"""Which client holds a record, from how well sums over varying cohorts fit its gradient."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import final

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize
from scipy.special import logsumexp

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

EXCHANGES, BLOCK = 39, 8
"""Number of exchanges of cohorts, each among so many neighbouring sums. In exchanges over the
whole run, a trend of who takes part would look like evidence."""

INFORMATION = 10.0
"""Variance of a record's weight over that of its error, in the check of cohorts."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class HolderOdds:
    """What sums say of the holder of each record.

    Args:
        log_ratios: for each client and record, the log-likelihood ratio that the client holds
            the record, against no client.
        nobody: for each record, the probability that no client holds it.
        cohorts_p: p-value of the hypothesis that fits go along with the cohorts no better than
            with cohorts exchanged among neighbouring sums; 0 = too few sums to exchange any.

    """

    log_ratios: Float[np.ndarray, "clients records"]
    nobody: Float[np.ndarray, " records"]
    cohorts_p: float


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
    (EM: Dempster et al. 1977). A record that no client holds may be so like a record of one
    that it looks held.

    Where cohorts are wrong, all records of one client would name the same wrong client, which
    may be the right one by chance. `HolderOdds.cohorts_p` tells it: who names clients needs it.

    Args:
        fit: how well each sum fits the gradient of each record.
        strength: the variance of the fit where no client of the sum holds the record.
        weights: the weight of each client in each sum; 0 = not in it.
        rounds: the round of each sum.

    """
    strength = strength.clip(min=TINY * max(float(strength.max()), TINY))
    scores = fit / np.sqrt(strength)
    sizes = np.abs(scores[scores != 0])  # A sum that says nothing has fits of 0.
    spread = float(np.median(sizes)) if len(sizes) else 1.0
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
    odds = _fit_effect(products, squares + TINY, (noise**2).sum(axis=0), len(fit))
    return HolderOdds(*odds, _p_of_cohorts(scores, took_part, rounds))


def _p_of_cohorts(
    scores: Float[np.ndarray, "sums records"],
    took_part: Float[np.ndarray, "sums clients"],
    rounds: Int[np.ndarray, " sums"],
) -> float:
    """Return the p-value of the cohorts among exchanges of neighbouring ones.

    The statistic is the evidence that some client holds a record, summed over the records. It
    has no parameter that is fitted to the cohorts. Single updates name their client, and are
    left out. Of fewer than `BLOCK` sums there are too few exchanges, and p is 0.
    """
    is_sum = (took_part > 0).sum(axis=1) > 1
    scores, took_part, rounds = scores[is_sum], took_part[is_sum], rounds[is_sum]
    sums, records = scores.shape
    if sums < BLOCK:
        return 0.0
    parts = [np.eye(sums), np.ones((sums, sums)), _alike(rounds)]
    total = _fit_covariance(scores @ scores.T / records, parts, (0.7, 0.1, 0.2))
    whitening = np.linalg.inv(np.linalg.cholesky(total))
    noise = whitening @ scores
    noise /= np.sqrt((noise**2).mean(axis=0)).clip(min=TINY)
    draws = np.random.default_rng(0)
    blocks = np.array_split(np.arange(sums), sums // BLOCK)
    true, at_least = _evidence(whitening @ took_part, noise), 1
    for _ in range(EXCHANGES):
        order = np.concatenate([draws.permutation(one) for one in blocks])
        at_least += _evidence(whitening @ took_part[order], noise) >= true - TINY * abs(true)
    return at_least / (1 + EXCHANGES)


def _evidence(
    effects: Float[np.ndarray, "sums clients"], noise: Float[np.ndarray, "sums records"]
) -> float:
    """Return the log of the evidence that some client holds a record, summed over records.

    The weight of a record is unknown, with a variance of `INFORMATION` times its error
    (a Zellner prior), and even odds of no client.
    """
    lengths = np.linalg.norm(effects, axis=0).clip(min=TINY)
    fits = ((effects / lengths).T @ noise).clip(min=0)  # (clients, records)
    ratios = fits**2 / 2 * INFORMATION / (1 + INFORMATION) - log(1 + INFORMATION) / 2
    of_any = logsumexp(ratios, axis=0) - log(len(ratios))
    return float(np.logaddexp(of_any, 0).sum())


def _alike(rounds: Int[np.ndarray, " sums"]) -> Float[np.ndarray, "sums sums"]:
    """Return how much of what fades is the same in two sums."""
    alike: Float[np.ndarray, "sums sums"]
    alike = np.exp(-np.abs(np.subtract.outer(rounds, rounds)) / MEMORY)
    return alike


def _whitening(
    scores: Float[np.ndarray, "sums records"],
    took_part: Float[np.ndarray, "sums clients"],
    rounds: Int[np.ndarray, " sums"],
) -> Float[np.ndarray, "sums sums"]:
    """Return the inverse root of the covariance of noise, by its five parts."""
    sums, records = scores.shape
    alike, shared = _alike(rounds), took_part @ took_part.T
    clients = float((took_part**2).sum()) / sums
    of_client = 0.1 / max(1.0, clients)
    total = _fit_covariance(
        scores @ scores.T / records,
        [np.eye(sums), shared, np.ones((sums, sums)), alike, alike * shared],
        (0.5, of_client, 0.1, 0.2, of_client),
    )
    whitening: Float[np.ndarray, "sums sums"] = np.linalg.inv(np.linalg.cholesky(total))
    return whitening


def _fit_covariance(
    moments: Float[np.ndarray, "sums sums"],
    of_parts: Sequence[Float[np.ndarray, "sums sums"]],
    shares: Sequence[float],
) -> Float[np.ndarray, "sums sums"]:
    """Return the sum of parts with the variances of the largest normal likelihood.

    Args:
        moments: mean products of the scores of two sums.
        of_parts: the covariance of each part, of variance 1.
        shares: the variances to start from, in units of the mean square of scores.

    """
    parts, size = np.stack(of_parts), float(np.trace(moments)) / len(moments)

    def unlikely(logs: np.ndarray) -> tuple[float, np.ndarray]:
        """Return minus twice the mean log likelihood, and its gradient."""
        variances = np.exp(logs)
        total = np.tensordot(variances, parts, 1)
        inverse = np.linalg.inv(total)
        slope = inverse - inverse @ moments @ inverse
        value = np.linalg.slogdet(total)[1] + (inverse * moments).sum()
        return float(value), variances * (parts * slope).sum(axis=(1, 2))

    start = np.log(np.array(shares) * max(size, TINY)).clip(*LOG_RANGE)
    bounds = [LOG_RANGE] * len(parts)
    found = minimize(unlikely, start, jac=True, method="L-BFGS-B", bounds=bounds)
    total: Float[np.ndarray, "sums sums"] = np.tensordot(np.exp(found.x), parts, 1)
    return total


def _fit_effect(
    products: Float[np.ndarray, "clients records"],
    squares: Float[np.ndarray, "clients records"],
    noise: Float[np.ndarray, " records"],
    sums: int,
) -> tuple[Float[np.ndarray, "clients records"], Float[np.ndarray, " records"]]:
    """Return log-likelihood ratios and the probability of no client, as in `HolderOdds`.

    The effect is that which fits all records.

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
    return ratios, _posterior(ratios, outside, clients)[0]


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
