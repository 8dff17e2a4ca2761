"""An estimate of epsilon from canaries: sharper than the bounds, and no proof."""

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

STEPS = 400
"""Points of the integral over the share of canaries without a guess."""


def estimate_gaussian_mu(
    canaries: int, guesses: int, wrong: int, *, level: float = 0.05
) -> float:
    """Return the largest mu under which so few wrong guesses are less likely than `level`.

    Xiang et al. 2025 ("Tight privacy audit in one run", arXiv 2509.08704): errors are counted
    as if canaries were independent and each were hidden by the Gaussian alone. A mechanism may
    err for all canaries together and still keep its promise. So this is an estimate: a true
    claim may lie below it more often than `level` says.

    Args:
        canaries: all canaries, each in by a fair coin.
        guesses: those with a guess: the surest.
        wrong: wrong guesses.
        level: the level.

    Returns:
        Mu; 0 = none is refuted.

    """
    low, high = 0.0, 50.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        if _chance_of_as_few(canaries, guesses, wrong, middle) <= level:
            low = middle
        else:
            high = middle
    return low


def _chance_of_as_few(canaries: int, guesses: int, wrong: int, mu: float) -> float:
    """Return the probability of at most this many wrong guesses under a Gaussian."""
    from scipy.stats import beta, binom  # only here: importing it takes half a second

    if guesses == canaries:
        return float(binom.cdf(wrong, guesses, ndtr(-mu / 2)))
    # The share of canaries whose likelihood ratio is less sure than that of all guesses.
    places = (np.arange(STEPS) + 0.5) / STEPS
    unsure = beta.ppf(places, canaries - guesses, guesses + 1)
    distances = _distances(1 - unsure, mu)
    errors, hits = ndtr(-distances - mu / 2), ndtr(-distances + mu / 2)
    return float(np.mean(binom.cdf(wrong, guesses, errors / (errors + hits))))


def _distances(shares: Float[np.ndarray, " points"], mu: float) -> Float[np.ndarray, " points"]:
    """Return how far a share of scores lies from the middle between in and out, by bisection.

    The scores are N(mu/2, 1) and N(-mu/2, 1), equally likely.
    """
    low, high = np.zeros_like(shares), np.full_like(shares, mu / 2 + 10)
    for _ in range(50):
        middle = (low + high) / 2
        is_nearer = ndtr(-middle - mu / 2) + ndtr(-middle + mu / 2) > shares
        low, high = np.where(is_nearer, middle, low), np.where(is_nearer, high, middle)
    return low
