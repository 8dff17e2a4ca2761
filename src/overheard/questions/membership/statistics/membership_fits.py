"""How well scores of records fit owners, and owners that might as well be true."""

import numpy as np
from jaxtyping import Bool, Float, Int

NON_MEMBER = -1
"""The owner of a record that no client holds."""


def record_ranks(
    scores: Float[np.ndarray, "claims records"],
) -> Float[np.ndarray, "claims records"]:
    """Return the rank of each record's score within its claim, from 0 to 1; ties share it."""
    ranks = np.array([_average_ranks(own) for own in scores]).reshape(scores.shape)
    shares: Float[np.ndarray, "claims records"] = (ranks - 0.5) / scores.shape[1]
    return shares


def _average_ranks(scores: Float[np.ndarray, " records"]) -> Float[np.ndarray, " records"]:
    """Return ranks from 1 on; equal scores share the mean of theirs."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks: Float[np.ndarray, " records"] = (counts.cumsum() - (counts - 1) / 2)[place]
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


def group_gains(
    ranks: Float[np.ndarray, "claims records"],
    targets: Int[np.ndarray, " claims"],
    owners: Int[np.ndarray, " records"],
    groups: Int[np.ndarray, " records"],
) -> Float[np.ndarray, " claims"]:
    """Return the mean AUC of each claim over all pairings within groups, less 0.5.

    A member of group a and a non-member of group b are then two random records of their groups.
    So the AUC is the mean, over all such pairs, of the probability that a random record of a
    ranks above one of b; within a group it is 0.5.

    Args:
        ranks: the rank of each record in each claim.
        targets: the target of each claim, as a number of an owner.
        owners: the owner of each record, or `NON_MEMBER`.
        groups: the group of each record, within which owners are permuted.

    """
    names, group = np.unique(groups, return_inverse=True)
    sizes = np.bincount(group)
    others = np.bincount(group[owners == NON_MEMBER], minlength=len(names))
    gains = []
    for of_claim, target in zip(ranks, targets, strict=True):
        held = np.bincount(group[owners == target], minlength=len(names))
        gain = 0.0
        for number in np.flatnonzero(others):
            level = np.sort(of_claim[group == number])
            below, not_above = (
                np.searchsorted(level, of_claim, "left"),
                np.searchsorted(level, of_claim, "right"),
            )
            wins = np.bincount(group, (below + not_above) / 2 / len(level)) / sizes
            gain += float(held @ (wins - 0.5)) * float(others[number])
        gains.append(gain / float(held.sum() * others.sum()))
    return np.array(gains)


def _mean_rank(
    is_counted: Bool[np.ndarray, "pairings records"],
    ranks: Float[np.ndarray, "claims records"],
) -> Float[np.ndarray, "pairings claims"]:
    # All pairings count as many records.
    means: Float[np.ndarray, "pairings claims"] = (
        is_counted.astype(np.float64) @ ranks.T / is_counted[0].sum()
    )
    return means
