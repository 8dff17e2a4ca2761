"""Reads label shares round by round, by one regression for all labels and rounds."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.learning.fitting.ridge import fit_ridge
from overheard.learning.fitting.standard import Standard, standard_of

RIDGE = 1e-3
"""Beside the number of readings, each sign being of variance 1: only to tell apart signs that
say the same."""

LEAST_SLOPE = 0.05
"""Of a round in which shares hardly show: its readings are blown up no further than twentyfold,
and as their errors grow with them they weigh next to nothing."""


@dataclass(frozen=True, slots=True)
class ShareTrack:
    """Label shares read in each round, by regression on either half of the virtual clients.

    Signs of a label are brought to one scale, label by label and round by round, so that one
    regression serves them all: from few virtual clients there are many readings to learn from.
    It goes to the square root of the share, which signs follow more nearly than the share
    itself: the tenth that a rare label gains moves a model more than that of a common one. One
    regression is learned from each half; what it tells of the other half shows how far to trust
    it. Regression pulls estimates to the mean: the slope by which it does, round by round, is
    measured on the other half and undone (inverse calibration), so that a share that rises by
    0.2 is told to rise by 0.2.

    Args:
        of_virtual: shares of virtual clients, by the regression of the half in which each is
            not.
        signs: the scale of each sign, of each label in each round.
        roots: the scale of each label's root.
        maps: by half, from signs to roots.
        slopes: by half and round.

    """

    of_virtual: Float[Tensor, "virtual rounds classes"]
    signs: Standard
    roots: Standard
    maps: Float[Tensor, "halves signs"]
    slopes: Float[Tensor, "halves rounds"]

    def read(
        self, signs: Float[Tensor, "rounds classes signs"]
    ) -> Float[Tensor, "rounds classes"]:
        """The mean of what the regressions of both halves tell of one target."""
        known = self.signs.of(signs.double()[None])[0]
        told = torch.einsum("rck,hk->hrc", known, self.maps) / self.slopes[:, :, None]
        return _shares(told.mean(0), self.roots)


def share_track(
    signs: Float[Tensor, "virtual rounds classes signs"],
    shares: Float[Tensor, "virtual classes"],
    halves: Int[Tensor, " virtual"],
) -> ShareTrack:
    """Learn to read shares from what was read of virtual clients, label by label."""
    rounds, by_sign = signs.shape[1], standard_of(signs.double())
    known = by_sign.of(signs.double())  # (virtual, rounds, classes, signs)
    scale = standard_of(shares.double().sqrt())
    roots = scale.of(shares.double().sqrt())
    told = roots.new_zeros(len(known), rounds, roots.shape[1])
    maps, slopes = [], []
    for half in (0, 1):
        own, others = halves == half, halves != half
        goal = roots[own][:, None].expand(-1, rounds, -1)
        readings = known[own].flatten(0, 2)
        penalty = readings.new_full((readings.shape[1],), RIDGE * len(readings))
        way = fit_ridge(readings, goal.flatten(), penalty)
        read, true = known[others] @ way, roots[others][:, None]
        slope = ((read * true).sum((0, 2)) / true.square().sum()).clamp(min=LEAST_SLOPE)
        told[others] = _shares(read / slope[:, None], scale)
        maps.append(way)
        slopes.append(slope)
    return ShareTrack(told, by_sign, scale, torch.stack(maps), torch.stack(slopes))


def _shares(
    told: Float[Tensor, "*many classes"], scale: Standard
) -> Float[Tensor, "*many classes"]:
    # A label of which all virtual clients hold alike has no spread to undo: it stays there.
    spread = scale.spread.where(scale.spread.isfinite(), 0.0)
    squares = (told * spread + scale.mean).clamp(min=0).square()
    total = squares.sum(-1, keepdim=True)
    alike = torch.full_like(squares, 1 / squares.shape[-1])
    return torch.where(total > 0, squares / total, alike)
