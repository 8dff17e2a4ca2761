"""P-values of several attacks that are adjusted for the choice of the best one."""

import numpy as np
from jaxtyping import Bool, Float

TIE = 1e-9
"""Statistics that differ by less than this part of their spread are tied: the same numbers
summed in another order differ by rounding."""


def adjusted_p_values(
    statistics: Float[np.ndarray, "pairings attacks"],
) -> Float[np.ndarray, " attacks"]:
    """Return the p-value of each attack, adjusted for the number of attacks.

    The null hypothesis is that claims have nothing to do with the targets, so that all pairings
    of claims with targets are equally likely. Each column is standardised by its mean and
    spread over all pairings, the true one included. An attack's p-value is the share of the
    pairings whose largest standardised statistic reaches the attack's own. The largest is taken
    over this attack and the weaker ones (step-down max-T: Westfall and Young 1993, algorithm
    2.8). If the null hypothesis holds for all attacks, the smallest p-value is at most a with
    probability at most a, for any a.

    An attack without a statistic, or with the same one for all pairings, gets p = 1.

    Args:
        statistics: how well the claims fit the targets, larger = better, on the same pairings
            for all attacks. Row 0 is the true pairing. A column with NaN or infinity has no
            statistic.

    """
    count, attacks = statistics.shape
    if count == 0:
        raise ValueError("statistics needs the true pairing as its first row, got no row")
    p_values = np.ones(attacks)
    is_judged = _varies(statistics)
    if not is_judged.any():
        return p_values
    judged = statistics[:, is_judged]
    scores = (judged - judged.mean(0)) / judged.std(0)
    order = np.argsort(-scores[0], kind="stable")
    ordered = scores[:, order]
    # The largest statistic of each attack and all weaker ones, from the strongest attack on.
    largest = np.maximum.accumulate(ordered[:, ::-1], axis=1)[:, ::-1]
    shares = (largest >= ordered[0] - TIE).mean(0)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(shares)
    p_values[is_judged] = adjusted
    return p_values


def _varies(statistics: Float[np.ndarray, "pairings attacks"]) -> Bool[np.ndarray, " attacks"]:
    """Return for each attack whether it has statistics that differ among pairings."""
    is_finite = np.isfinite(statistics).all(0)
    known = np.where(is_finite, statistics, 0.0)
    varies: Bool[np.ndarray, " attacks"] = is_finite & (
        np.ptp(known, axis=0) > TIE * np.abs(known).max(0)
    )
    return varies
