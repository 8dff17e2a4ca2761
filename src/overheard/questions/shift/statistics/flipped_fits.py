"""How well evidence of a shift fits the run with the shift, and its natural controls."""

import numpy as np
from jaxtyping import Float, Int


def flipped_fits(
    peaks: Float[np.ndarray, "attacks targets alternatives"],
    runs: Int[np.ndarray, " targets"],
    choices: Int[np.ndarray, "pairings runs"],
) -> Float[np.ndarray, "pairings attacks"]:
    """Return the sum over targets of the rank of the evidence in the run with the shift.

    In each pairing, another run of a seed may stand for the one with the shift. Ranks are
    among all runs of all seeds; ties share their mean rank.

    Args:
        peaks: the largest evidence in the run with the shift first, then in each natural
            control of its seed. Minus infinity = no evidence; NaN = no such control, or no
            claim about this target.
        runs: the seed of each target, from 0 on.
        choices: the number of the run of each seed that stands for the one with the shift.

    """
    attacks, targets, _ = peaks.shape
    from scipy.stats import rankdata  # only here: importing it takes half a second

    ranks = rankdata(peaks.reshape(attacks, -1), axis=1, nan_policy="omit").reshape(peaks.shape)
    chosen = choices[:, runs]  # (pairings, targets)
    places = np.arange(targets)
    return np.stack([np.nansum(table[places, chosen], axis=1) for table in ranks], axis=1)
