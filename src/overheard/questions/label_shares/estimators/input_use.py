"""Whether real updates use the inputs of the model as those of virtual clients do."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.learning.fitting.ridge import fit_ridge

RIDGE = 1e-3
"""Ridge of the regression on label shares, per virtual client."""

TINY = 1e-12


def input_shift(
    virtual: Float[Tensor, "clients rounds inputs"],
    real: Float[Tensor, "targets rounds inputs"],
    virtual_shares: Float[Tensor, "clients classes"],
    shares: Float[Tensor, "targets classes"],
    halves: Int[Tensor, " clients"],
) -> float:
    """Compare the readings of `InputNorms` of real clients with those of virtual ones.

    A regression on label shares explains how the labels of a client change its readings; what
    it leaves are residuals. The mean square of the targets' mean residual, over all inputs, is
    divided by what chance would make of it:

    - The virtual clients of the two halves have different examples of one population. A quarter
      of the mean squared difference between the halves is the variance that comes of a finite
      number of auxiliary examples.
    - The variance of the residuals over the number of targets comes of the targets' examples.

    Augmented copies are less varied than real examples, so the ratio is above 1 with few
    auxiliary examples even if nothing is wrong.

    Args:
        virtual: readings of the virtual clients.
        real: readings of the targets, all finite.
        virtual_shares: true label shares of the virtual clients.
        shares: estimated label shares of the targets.
        halves: the half of the auxiliary examples on which each virtual client trained.

    Returns:
        The ratio, averaged over rounds: about 1 if all examples come from one population; 0
        without targets, or if one half has no virtual client.

    """
    counts = halves.bincount(minlength=2)
    if not len(real) or not int(counts.min()):
        return 0.0
    known, wanted = _expand(virtual_shares), _expand(shares)
    penalty = known.new_full((known.shape[1],), RIDGE * len(known))
    ratios = []
    for number in range(virtual.shape[1]):
        readings = virtual[:, number].double()
        weights = fit_ridge(known, readings, penalty)
        rest = readings - known @ weights
        ours = real[:, number].double() - wanted @ weights
        between = rest[halves == 0].mean(0) - rest[halves == 1].mean(0)
        chance = between.square().mean() / 4 + rest.var(0).mean() / len(ours)
        ratios.append(ours.mean(0).square().mean() / (chance + TINY))
    return float(torch.stack(ratios).mean())


def _expand(shares: Float[Tensor, "clients classes"]) -> Float[Tensor, "clients numbers"]:
    """Return shares, their roots and a 1: readings are logarithms, hence concave in shares."""
    known = shares.double()
    return torch.cat((known, known.sqrt(), known.new_ones(len(known), 1)), 1)
