"""Average precision of rankings when ties are broken at random."""

import numpy as np
from jaxtyping import Bool, Float, Int


def average_precisions(
    scores: Float[np.ndarray, " targets"], owners: Int[np.ndarray, " targets"], count: int
) -> Float[np.ndarray, " owners"]:
    """Compute the average precision of one ranking of targets, for each owner's targets.

    For an owner's targets at ranks r(1) < .. < r(n) it is the mean over k of k / r(k), the area
    under the precision-recall curve (`sklearn.metrics.average_precision_score`). With ties it
    is the expectation over all orders of the tied targets, so that constant scores get the
    value of a random ranking. The value of scikit-learn is lower: it uses the precision at the
    end of a tie.

    Take a tie of m targets after b others. The owner has p of the m, and q of the b. Position j
    of the tie adds (p / m) (q + 1 + (j - 1) (p - 1) / (m - 1)) / (b + j).

    Args:
        scores: larger = ranked higher; may be minus infinity, never NaN.
        owners: the owner of each target, from 0 to `count` - 1.
        count: number of owners; an owner without a target gets NaN.

    """
    return _average_precisions(scores, np.arange(len(scores)), owners, count)


def shared_average_precisions(
    scores: Float[np.ndarray, " targets"], is_owned: Bool[np.ndarray, "owners targets"]
) -> Float[np.ndarray, " owners"]:
    """Compute the average precisions where a target may have many owners, or none."""
    owners, targets = np.nonzero(is_owned)
    return _average_precisions(scores, targets, owners, len(is_owned))


def _average_precisions(
    scores: Float[np.ndarray, " targets"],
    owned_targets: Int[np.ndarray, " pairs"],
    owners: Int[np.ndarray, " pairs"],
    count: int,
) -> Float[np.ndarray, " owners"]:
    """Compute the average precisions from all pairs of a target and an owner of it."""
    levels, level = np.unique(-scores, return_inverse=True)
    sizes = np.bincount(level)
    # One entry per owner and tie that has some of its targets.
    pairs, owned = np.unique(owners * len(levels) + level[owned_targets], return_counts=True)
    owner, tie = np.divmod(pairs, len(levels))
    size, before = sizes[tie], (np.cumsum(sizes) - sizes)[tie]
    ahead = np.cumsum(owned) - owned
    ahead -= ahead[np.searchsorted(owner, owner)]
    harmonic = _harmonic(len(scores))
    ranks = harmonic[before + size] - harmonic[before]  # sum over j of 1 / (b + j)
    later = size - (before + 1) * ranks  # sum over j of (j - 1) / (b + j)
    others = (owned - 1) / np.maximum(size - 1, 1)
    gained = owned / size * ((ahead + 1) * ranks + others * later)
    positives = np.bincount(owners, minlength=count)
    with np.errstate(invalid="ignore"):
        precisions: Float[np.ndarray, " owners"] = (
            np.bincount(owner, gained, minlength=count) / positives
        )
    return precisions


def random_average_precisions(
    positives: Int[np.ndarray, " owners"], targets: int
) -> Float[np.ndarray, " owners"]:
    """Return the expected average precision of a random ranking.

    With p positives among n targets and H = 1 + 1/2 + .. + 1/n it is
    (H + (p - 1) (n - H) / (n - 1)) / n. It is above p / n, by far for small p: H / n for p = 1.
    """
    harmonic = _harmonic(targets)[targets]
    beyond = (targets - harmonic) / max(targets - 1, 1)
    chances: Float[np.ndarray, " owners"] = (harmonic + (positives - 1) * beyond) / targets
    return chances


def _harmonic(count: int) -> Float[np.ndarray, " ranks"]:
    """Return the harmonic numbers H(0) .. H(count)."""
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, count + 1))])
