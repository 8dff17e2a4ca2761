"""What rankings are worth whose ties are broken by chance."""

import numpy as np
from jaxtyping import Float, Int


def average_precisions(
    scores: Float[np.ndarray, " targets"], owners: Int[np.ndarray, " targets"], count: int
) -> Float[np.ndarray, " owners"]:
    """The average precision of one ranking of targets, for each owner taken as the one sought.

    With an owner's targets at the ranks r(1) < .. < r(n): mean over k of k / r(k), the area
    under the curve of precision and recall (scikit-learn's `average_precision_score`). Targets
    with alike scores share their places: given is the expectation over all orders of them, so
    that scores which say nothing get what a random ranking gets. (scikit-learn takes for a tie
    the precision at its end, which is less.)

    Of m tied targets after b others, p of them the owner's, of which q came before, the one in
    place j of the tie adds (p / m) (q + 1 + (j - 1) (p - 1) / (m - 1)) / (b + j).

    Args:
        scores: larger = ranked higher; may be minus infinity, never NaN.
        owners: of each target, from 0 to `count` - 1.
        count: how many owners there are; one without a target gets NaN.

    """
    levels, level = np.unique(-scores, return_inverse=True)
    sizes = np.bincount(level)
    places, held = np.unique(owners * len(levels) + level, return_counts=True)
    who, group = np.divmod(places, len(levels))
    size, before = sizes[group], (np.cumsum(sizes) - sizes)[group]
    ahead = np.cumsum(held) - held
    ahead -= ahead[np.searchsorted(who, who)]
    harmonic = _harmonic(len(scores))
    ranks = harmonic[before + size] - harmonic[before]  # sum over j of 1 / (b + j)
    later = size - (before + 1) * ranks  # sum over j of (j - 1) / (b + j)
    others = (held - 1) / np.maximum(size - 1, 1)
    gained = held / size * ((ahead + 1) * ranks + others * later)
    positives = np.bincount(owners, minlength=count)
    with np.errstate(invalid="ignore"):
        precisions: Float[np.ndarray, " owners"] = (
            np.bincount(who, gained, minlength=count) / positives
        )
    return precisions


def chance_precisions(
    positives: Int[np.ndarray, " owners"], targets: int
) -> Float[np.ndarray, " owners"]:
    """The average precision that a random ranking is expected to get.

    With p of n targets sought and H = 1 + 1/2 + .. + 1/n: (H + (p - 1) (n - H) / (n - 1)) / n.
    It is above p / n, and far above where p is small: of one target among n, H / n.
    """
    harmonic = _harmonic(targets)[targets]
    beyond = (targets - harmonic) / max(targets - 1, 1)
    chances: Float[np.ndarray, " owners"] = (harmonic + (positives - 1) * beyond) / targets
    return chances


def _harmonic(count: int) -> Float[np.ndarray, " ranks"]:
    """H(0) .. H(count)."""
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, count + 1))])
