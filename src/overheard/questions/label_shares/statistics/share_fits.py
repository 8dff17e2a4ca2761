"""How well claimed label shares fit true ones, and others that might as well be true."""

from typing import cast

import numpy as np
from jaxtyping import Float, Int

from overheard.statistics.pairing_sums import log_fit
from overheard.statistics.person_pairings import sum_by_person

OWN_WEIGHT = 0.5
"""Weight of the truth's own logarithms in `redrawn_share_fits`: of 0, 0.5 and 1 the one that
finds most claims, from perfect ones about one client to those with a fifth of the truth."""


def redrawn_share_fits(
    claims: Float[np.ndarray, "attacks targets classes"],
    truths: Float[np.ndarray, "partitions targets classes"],
) -> Float[np.ndarray, "partitions attacks"]:
    """Return how well all claims of each attack fit each partition.

    With true shares p and claimed shares q it is the sum over targets and labels of
    p (log_fit(q) - log_fit(p) / 2). Without the second term, weak claims are found with the
    fewest clients, but shares that are more uneven than the true ones fit a perfect claim
    better. With the whole term, the negative divergence of Kullback and Leibler, it is the
    reverse.

    Args:
        claims: the claimed shares.
        truths: the true shares first, then those of partitions drawn anew.

    """
    sums = np.tensordot(truths, log_fit(claims), axes=([1, 2], [1, 2]))
    own = (truths * log_fit(truths)).sum((1, 2)) * OWN_WEIGHT
    return cast("Float[np.ndarray, 'partitions attacks']", sums - own[:, None])


def share_fits(
    claims: Float[np.ndarray, "attacks targets classes"],
    units: Int[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    truths: Float[np.ndarray, "runs units classes"],
) -> Float[np.ndarray, "attacks units units"]:
    """Return how well the claims about each unit fit the true shares of every unit.

    The mean over the targets of a run is subtracted: what they have in common is no difference
    between them.

    Args:
        claims: the claimed shares; NaN = the attack claims nothing about this target.
        units: what is exchanged: the client or the run behind each target.
        runs: the run of each target.
        truths: the true shares of each unit in each run; NaN = it takes no part.

    """
    fits = []
    for shares in claims:
        of_units = np.einsum("tc,tuc->tu", log_fit(shares), truths[runs])
        fits.append(sum_by_person(of_units, units, runs, truths.shape[1]))
    return np.stack(fits)
