"""Quantiles of the attacker's numbers, weighted so that they have another mean."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

STRONGEST = 8.0
"""The strongest tilt, per standard deviation of the numbers."""

STEPS = 40
"""Bisections of the tilt, which halve its error each."""


def tilted_quantiles(
    means: Float[np.ndarray, " clients"],
    sample: Float[np.ndarray, " examples"],
    levels: Sequence[float],
) -> Float[np.ndarray, "clients levels"]:
    """Return the quantiles of a sample whose weights exp(a y) give it each of these means.

    Of all weights with that mean, these are nearest to equal ones by relative entropy (Csiszar
    1975). So values that are frequent in the sample, such as 40 hours a week, stay frequent. A
    mean beyond what the strongest tilt gives gets that of the strongest.

    Args:
        means: the means.
        sample: numbers of the attacker's examples.
        levels: the levels of the quantiles, 0..1.

    """
    numbers = np.sort(sample.astype(np.float64))
    deviation = numbers.std()
    if not deviation > 0:
        return np.full((len(means), len(levels)), numbers[0])
    standard = (numbers - numbers.mean()) / deviation
    low, high = np.full(len(means), -STRONGEST), np.full(len(means), STRONGEST)
    for _ in range(STEPS):
        middle = (low + high) / 2
        is_above = _weights(middle, standard) @ numbers > means
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    summed = _weights((low + high) / 2, standard).cumsum(1)
    places = [np.minimum((summed < level - 1e-12).sum(1), len(numbers) - 1) for level in levels]
    return np.stack([numbers[place] for place in places], 1)


def _weights(
    tilts: Float[np.ndarray, " clients"], standard: Float[np.ndarray, " examples"]
) -> Float[np.ndarray, "clients examples"]:
    exponents = tilts[:, None] * standard
    weights = np.exp(exponents - exponents.max(1, keepdims=True))
    normal: Float[np.ndarray, "clients examples"] = weights / weights.sum(1, keepdims=True)
    return normal
