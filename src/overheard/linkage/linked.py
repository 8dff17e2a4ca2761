"""Which updates of different rounds are of one sender, by how near they lie."""

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from torch import Tensor


def linked(
    nearness: Float[Tensor, "updates updates"], rounds: Int[Tensor, " updates"], least: float
) -> Int[Tensor, " updates"]:
    """Number the senders of updates: those that link have one number.

    Average linkage (Sokal and Michener 1958), cut where a mean nearness falls below `least`.
    No two updates of one round are linked, as nobody answers twice.

    Args:
        nearness: of each two, -1..1.
        rounds: of each.
        least: mean nearness of two groups that are linked.

    """
    if len(rounds) < 2:
        return torch.zeros(len(rounds), dtype=torch.long)
    distance = (1 - (nearness + nearness.T) / 2).clamp(min=0)
    # One such pair among the at most n^2 / 4 of two groups puts their mean at 4 or more, and
    # other distances reach 2.
    distance[rounds[:, None] == rounds[None]] = float(len(rounds)) ** 2
    distance.fill_diagonal_(0)
    tree = linkage(squareform(distance.numpy(), checks=False), "average")
    found = fcluster(tree, min(2.0, 1 - least), "distance")
    return torch.from_numpy(np.unique(found, return_inverse=True)[1].astype(np.int64))


def least_nearness(
    nearness: Float[Tensor, "updates updates"],
    people: Int[Tensor, " updates"],
    rounds: Int[Tensor, " updates"],
) -> float:
    """Where as many pairs of one person are missed as pairs of two are taken for one, in share.

    The lowest such, as spaces that were learned on these very pairs make those of one person
    nearer than they are. Pairs of different rounds alone; infinity where no person has two of
    them, so that nothing is linked.
    """
    apart = torch.ones_like(nearness, dtype=torch.bool).triu(1)
    apart &= rounds[:, None] != rounds[None]
    same = people[:, None] == people[None]
    own, others = nearness[apart & same].sort().values, nearness[apart & ~same].sort().values
    if not len(own) or not len(others):
        return float("inf")
    levels = torch.linspace(float(others[0]), float(own[-1]), 2001, dtype=nearness.dtype)
    missed = torch.searchsorted(own, levels) / len(own)
    taken = 1 - torch.searchsorted(others, levels) / len(others)
    return float(levels[(missed - taken).abs().argmin()])
