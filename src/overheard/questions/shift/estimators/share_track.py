"""Estimates label shares by round with one regression for all labels and rounds."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.learning.fitting.ridge import fit_ridge
from overheard.learning.fitting.standardizer import Standardizer, fit_standardizer

RIDGE_PENALTY = 1e-3
"""Ridge penalty per row, for features of variance 1; it only resolves collinear features."""

MIN_SLOPE = 0.05
"""Lower bound of the slope: estimates of a round with little signal are scaled up at most
twentyfold. Their errors scale with them, so such rounds have almost no weight."""


@dataclass(frozen=True, slots=True)
class ShareTrack:
    """Estimates of label shares by round, from regressions on the halves of virtual clients.

    The features of a label are standardised for each label and round, so that one regression
    serves all labels and rounds and few virtual clients give many training rows. It predicts
    the square root of the share, which is closer to linear in the features: a tenth more of a
    rare label changes a model more than a tenth more of a common one. One regression is fitted
    on each half of the virtual clients and validated on the other half. Regression shrinks
    estimates to the mean. Its slope is measured by round on the other half and inverted
    (inverse calibration), so that a share that rises by 0.2 is estimated to rise by 0.2.

    Args:
        virtual_shares: estimated shares of virtual clients, each from the regression of the
            other half.
        feature_scale: the scale of each feature, for each label and round.
        root_scale: the scale of the root of each label's share.
        coefficients: coefficients from features to roots, by half.
        slopes: slopes by half and round.

    """

    virtual_shares: Float[Tensor, "virtual rounds classes"]
    feature_scale: Standardizer
    root_scale: Standardizer
    coefficients: Float[Tensor, "halves features"]
    slopes: Float[Tensor, "halves rounds"]

    def read(
        self, signs: Float[Tensor, "rounds classes features"]
    ) -> Float[Tensor, "rounds classes"]:
        """Return the mean of both regressions' estimates for one target."""
        features = self.feature_scale.standardize(signs.double()[None])[0]
        roots = (
            torch.einsum("rck,hk->hrc", features, self.coefficients) / self.slopes[:, :, None]
        )
        return _shares_from_roots(roots.mean(0), self.root_scale)


def fit_share_track(
    signs: Float[Tensor, "virtual rounds classes features"],
    shares: Float[Tensor, "virtual classes"],
    halves: Int[Tensor, " virtual"],
) -> ShareTrack:
    """Fit regressions from the features of each label to its share on virtual clients."""
    rounds, by_feature = signs.shape[1], fit_standardizer(signs.double())
    features = by_feature.standardize(signs.double())  # (virtual, rounds, classes, features)
    scale = fit_standardizer(shares.double().sqrt())
    roots = scale.standardize(shares.double().sqrt())
    estimates = roots.new_zeros(len(features), rounds, roots.shape[1])
    maps, slopes = [], []
    for half in (0, 1):
        own, others = halves == half, halves != half
        goal = roots[own][:, None].expand(-1, rounds, -1)
        rows = features[own].flatten(0, 2)
        penalty = rows.new_full((rows.shape[1],), RIDGE_PENALTY * len(rows))
        coefficients = fit_ridge(rows, goal.flatten(), penalty)
        predicted, true = features[others] @ coefficients, roots[others][:, None]
        slope = ((predicted * true).sum((0, 2)) / true.square().sum()).clamp(min=MIN_SLOPE)
        estimates[others] = _shares_from_roots(predicted / slope[:, None], scale)
        maps.append(coefficients)
        slopes.append(slope)
    return ShareTrack(estimates, by_feature, scale, torch.stack(maps), torch.stack(slopes))


def _shares_from_roots(
    roots: Float[Tensor, "*many classes"], scale: Standardizer
) -> Float[Tensor, "*many classes"]:
    # A label with equal shares in all virtual clients has no spread; it keeps its mean.
    spread = scale.deviation.where(scale.deviation.isfinite(), 0.0)
    squares = (roots * spread + scale.mean).clamp(min=0).square()
    total = squares.sum(-1, keepdim=True)
    uniform = torch.full_like(squares, 1 / squares.shape[-1])
    return torch.where(total > 0, squares / total, uniform)
