"""The share of small p-values over many synthetic audits."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from overheard.statistics.permutation_test import adjusted_p_values

AUDITS = 200
"""Synthetic audits. Of 200, a correct test says "leaks" in at most 13 with 99.9 %, and has a
p-value of 0.2 or less in at most 58."""


def smallest_p_values(
    fits_of: Callable[[int], Float[np.ndarray, "pairings attacks"]],
) -> Float[np.ndarray, " audits"]:
    """Return the smallest adjusted p-value of each of `AUDITS` audits."""
    return np.array([adjusted_p_values(fits_of(number)).min() for number in range(AUDITS)])


def assert_uniform(p_values: Float[np.ndarray, " audits"]) -> None:
    """Check that small p-values are as rare as they claim to be."""
    assert (p_values <= 0.025).sum() <= 13
    assert (p_values <= 0.2).sum() <= 58
