"""How well a ranking of words finds the words that were used, for several truths at once."""

import numpy as np
from jaxtyping import Bool, Float


def average_precisions_of_words(
    scores: Float[np.ndarray, " words"], used: Bool[np.ndarray, "truths words"]
) -> Float[np.ndarray, " truths"]:
    """Return the average precision of one ranking of words, for each truth.

    As `statistics.average_precision.average_precisions`, but a word may be used in many truths.
    Equal scores get the expectation over all orders of the tied words. NaN for a truth without
    a word.
    """
    order = np.argsort(-scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)
    sizes = np.diff(np.append(starts, len(scores)))
    owned = np.add.reduceat(used[:, order].astype(np.float64), starts, axis=1)  # (truths, ties)
    ahead = owned.cumsum(1) - owned
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, len(scores) + 1))])
    ranks = harmonic[starts + sizes] - harmonic[starts]
    later = sizes - (starts + 1) * ranks
    others = (owned - 1) / np.maximum(sizes - 1, 1)
    gained = owned / sizes * ((ahead + 1) * ranks + others * later)
    with np.errstate(invalid="ignore"):
        precisions: Float[np.ndarray, " truths"] = gained.sum(1) / used.sum(1)
    return precisions


def share_among_first(
    scores: Float[np.ndarray, " words"], used: Bool[np.ndarray, " words"], length: int
) -> float:
    """Return the share of used words among the first ones of a ranking.

    Words that tie at the end of the list share its remaining places.

    Args:
        scores: larger = ranked higher.
        used: whether each word was used, once or more.
        length: words in the list; no more than were used.

    """
    length = min(length, int(used.sum()))
    threshold = np.sort(scores)[-length]
    above, tied = scores > threshold, scores == threshold
    part = (length - above.sum()) / tied.sum()
    return float((used[above].sum() + part * used[tied].sum()) / length)
