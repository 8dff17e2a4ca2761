"""Sums over pairings of claims with the truths of other targets."""

import numpy as np
from jaxtyping import Float, Int

FIT_FLOOR = 0.01
"""Added to a probability inside the logarithm of `log_fit`, so that a claim of 0 for what is
true has a finite cost."""


def log_fit(probabilities: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return how well claimed probabilities fit what they are claimed of.

    It is ln(probability + `FIT_FLOOR`), a logarithmic score. A claim that has little to do with
    the truth is detected by it with fewer targets than by a distance, since a claim seldom
    gives a small probability to what it knows something about.
    """
    fits: Float[np.ndarray, "..."] = np.log(probabilities + FIT_FLOOR)
    return fits


def sum_over_pairings(
    fits: Float[np.ndarray, "attacks claims truths"],
    pairings: Int[np.ndarray, "pairings claims"],
) -> Float[np.ndarray, "pairings attacks"]:
    """Return the sum of the fits of all claims with the truths of each pairing.

    >>> fits = np.array([[[5.0, 0.0], [1.0, 7.0]]])
    >>> sum_over_pairings(fits, np.array([[0, 1], [1, 0]]))
    array([[12.],
           [ 1.]])
    """
    claims = np.arange(fits.shape[1])
    return np.stack([table[claims, pairings].sum(1) for table in fits], axis=1)
