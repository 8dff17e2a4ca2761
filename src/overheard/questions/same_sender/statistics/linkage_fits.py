"""How well claims about linked targets fit senders that are permuted within rounds."""

import numpy as np
from jaxtyping import Float, Int

PAIRS_AT_ONCE = 2_000_000
"""Entries of a table that are gathered at a time: 16 MB."""


def pair_fits(
    scores: Float[np.ndarray, "targets targets"],
) -> Float[np.ndarray, "targets targets"]:
    """Return the evidence that two targets have one sender, as -ln(rank) for each target.

    Args:
        scores: the claimed evidence, larger = more; NaN = not compared, such as a target with
            itself.

    """
    is_compared = np.isfinite(scores)
    # What is not compared ranks last, so that it changes no other rank.
    from scipy.stats import rankdata  # only here: importing it takes half a second

    ranks = rankdata(np.where(is_compared, -scores, np.inf), axis=1)
    fits: Float[np.ndarray, "targets targets"] = np.where(is_compared, -np.log(ranks), 0.0)
    return fits


def linkage_fits(
    fits: Float[np.ndarray, "targets targets"],
    senders: Int[np.ndarray, " targets"],
    pairings: Int[np.ndarray, "pairings targets"],
) -> Float[np.ndarray, " pairings"]:
    """Return for each pairing the sum of `fits` over all pairs of targets of one sender.

    Args:
        fits: the evidence of each pair.
        senders: the sender of each target.
        pairings: permutations of targets within rounds: a sender gets other targets, of the
            same rounds. To permute people among targets of all rounds would change nothing:
            the same targets would have one sender.

    """
    one, other = np.nonzero((senders[:, None] == senders) & ~np.eye(len(senders), dtype=bool))
    sums = np.zeros(len(pairings))
    step = max(1, PAIRS_AT_ONCE // max(1, len(one)))
    for start in range(0, len(pairings), step):
        part = pairings[start : start + step]
        sums[start : start + step] = fits[part[:, one], part[:, other]].sum(1)
    return sums
