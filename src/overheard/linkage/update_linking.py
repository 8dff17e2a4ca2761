"""Linking of updates from different rounds that come from the same sender, by similarity."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor


def link_updates(
    similarity: Float[Tensor, "updates updates"],
    rounds: Int[Tensor, " updates"],
    threshold: float,
) -> Int[Tensor, " updates"]:
    """Return a group number for each update; linked updates share a number.

    Average linkage (Sokal and Michener 1958), cut where the mean similarity of two groups falls
    below `threshold`. Updates of one round are never linked, as a client replies once a round.

    Args:
        similarity: similarity of each pair of updates, -1..1.
        rounds: round of each update.
        threshold: smallest mean similarity of two groups that are linked.

    """
    # Only here: importing them takes a third of a second.
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(rounds) < 2:
        return torch.zeros(len(rounds), dtype=torch.long)
    distance = (1 - (similarity + similarity.T) / 2).clamp(min=0)
    # Other distances are at most 2. Two groups have at most n^2 / 4 pairs, so one such pair
    # raises their mean distance to 4 or more.
    distance[rounds[:, None] == rounds[None]] = float(len(rounds)) ** 2
    distance.fill_diagonal_(0)
    tree = linkage(squareform(distance.numpy(), checks=False), "average")
    groups = fcluster(tree, min(2.0, 1 - threshold), "distance")
    return torch.from_numpy(np.unique(groups, return_inverse=True)[1].astype(np.int64))


def equal_error_threshold(
    similarity: Float[Tensor, "updates updates"],
    users: Int[Tensor, " updates"],
    rounds: Int[Tensor, " updates"],
) -> float:
    """Return the similarity threshold at the equal error rate.

    There the share of missed same-user pairs equals the share of accepted different-user pairs.
    The lowest such threshold is taken: the spaces were fitted to these pairs, which makes
    same-user pairs look too similar. Only pairs from different rounds count. Infinity, so that
    nothing is linked, if no user has such a pair.
    """
    is_pair = torch.ones_like(similarity, dtype=torch.bool).triu(1)
    is_pair &= rounds[:, None] != rounds[None]
    is_same_user = users[:, None] == users[None]
    same_user, different_users = (
        similarity[is_pair & is_same_user].sort().values,
        similarity[is_pair & ~is_same_user].sort().values,
    )
    if not len(same_user) or not len(different_users):
        return float("inf")
    thresholds = torch.linspace(
        float(different_users[0]), float(same_user[-1]), 2001, dtype=similarity.dtype
    )
    missed = torch.searchsorted(same_user, thresholds) / len(same_user)
    accepted = 1 - torch.searchsorted(different_users, thresholds) / len(different_users)
    return float(thresholds[(missed - accepted).abs().argmin()])
