"""How well scores of records fit owners, and owners that might as well be true."""

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import rankdata

NON_MEMBER = -1
"""The owner of a record that no client holds."""


def record_ranks(
    scores: Float[np.ndarray, "claims records"],
) -> Float[np.ndarray, "claims records"]:
    """Return the rank of each record's score within its claim, from 0 to 1; ties share it."""
    ranks: Float[np.ndarray, "claims records"] = (
        rankdata(scores, axis=1) - 0.5
    ) / scores.shape[1]
    return ranks


def membership_fits(
    ranks: Float[np.ndarray, "claims records"],
    targets: Int[np.ndarray, " claims"],
    owners: Int[np.ndarray, "pairings records"],
) -> Float[np.ndarray, "pairings claims"]:
    """Return how much higher members rank than non-members, for each claim and pairing.

    It is a difference of mean ranks. If there is one target, it is the AUC less 0.5.

    Args:
        ranks: the rank of each record in each claim.
        targets: the target of each claim, as a number of an owner.
        owners: the owner of each record, or `NON_MEMBER`. The number of records of an owner is
            the same in all pairings.

    """
    means = np.zeros((len(owners), len(ranks)))
    for target in np.unique(targets):
        about = targets == target
        means[:, about] = _mean_rank(owners == target, ranks[about])
    differences: Float[np.ndarray, "pairings claims"] = means - _mean_rank(
        owners == NON_MEMBER, ranks
    )
    return differences


def _mean_rank(
    is_counted: Bool[np.ndarray, "pairings records"],
    ranks: Float[np.ndarray, "claims records"],
) -> Float[np.ndarray, "pairings claims"]:
    # All pairings count as many records.
    means: Float[np.ndarray, "pairings claims"] = (
        is_counted.astype(np.float64) @ ranks.T / is_counted[0].sum()
    )
    return means
