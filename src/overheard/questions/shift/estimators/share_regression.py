"""Estimates label shares by round, with regressions fitted to simulated federations."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.learning.fitting.ridge import fit_ridge
from overheard.learning.fitting.standardizer import Standardizer, fit_standardizer

RIDGE_PENALTY = 1e-3
"""Ridge penalty per row, for features of variance 1; it only resolves collinear features."""

MIN_SLOPE = 0.05
"""Lower bound of the slope: estimates of a round with little signal are scaled up at most
twentyfold. Their errors scale with them, so such rounds have almost no weight."""

FOLDS = 5
"""Each fold of the federations is estimated by a regression on the others."""

MOST_DEVIATIONS = 2.5
"""Features are limited to this many standard deviations of simulated federations. What lies far
outside is a peculiarity of the auxiliary examples rather than of the target."""

NEIGHBOURS = 1
"""A round's regression is also fitted to the rounds before and after it, of the simulations."""


@final
@dataclass(frozen=True, slots=True)
class ShareRegression:
    """Regressions from the features of a label to its share, one for each round.

    The features are standardised for each label and round, so that one regression serves all
    labels. It predicts the square root of the share, which is closer to linear in the features:
    a tenth more of a rare label changes a model more than a tenth more of a common one.
    Regression shrinks estimates to the mean; this slope is measured on federations that the
    regression was not fitted to, and inverted (inverse calibration), so that a share that rises
    by 0.2 is estimated to rise by 0.2.

    Args:
        feature_scale: the scale of each feature, for each round and label.
        root_scale: the scale of the root of each label's share.
        coefficients: from features to standardised roots, by round.
        slopes: the slope of estimates in the true shares, by round; 1 = not yet measured.
        mean: the mean estimate before the slope is inverted, by round and label.

    """

    feature_scale: Standardizer
    root_scale: Standardizer
    coefficients: Float[Tensor, "rounds features"]
    slopes: Float[Tensor, " rounds"]
    mean: Float[Tensor, "rounds classes"]

    def read(
        self, features: Float[Tensor, "runs rounds classes features"]
    ) -> Float[Tensor, "runs rounds classes"]:
        """Return the estimated shares; each round's depend on that round's features alone."""
        shrunk = _shrunk_shares(self, features)
        return self.mean + (shrunk - self.mean) / self.slopes[:, None]


def fit_share_regression(
    features: Float[Tensor, "federations rounds classes features"],
    shares: Float[Tensor, "federations rounds classes"],
) -> tuple[ShareRegression, Float[Tensor, "federations rounds classes"]]:
    """Fit the regression to all federations.

    Return it, and the estimates of each federation by a regression on the other folds.
    """
    fold = torch.arange(len(features)) % FOLDS
    held_out = torch.empty_like(shares)
    for number in range(FOLDS):
        own = fold == number
        if bool(own.any()):
            fitted = _fit(features[~own], shares[~own])
            held_out[own] = _shrunk_shares(fitted, features[own])
    mean, slopes = held_out.mean(0), _slopes(held_out, shares)
    whole = _fit(features, shares)
    regression = ShareRegression(
        whole.feature_scale, whole.root_scale, whole.coefficients, slopes, mean
    )
    return regression, mean + (held_out - mean) / slopes[:, None]


def _fit(features: Tensor, shares: Tensor) -> ShareRegression:
    rounds, classes = shares.shape[1:]
    scale = fit_standardizer(features)
    standard = _standard(scale, features)
    roots = fit_standardizer(shares.sqrt().flatten(0, 1))
    goal = roots.standardize(shares.sqrt())
    penalty = standard.new_full((standard.shape[-1],), RIDGE_PENALTY)
    penalty[-1] = 0
    coefficients = []
    for place in range(rounds):
        near = slice(max(0, place - NEIGHBOURS), place + NEIGHBOURS + 1)
        rows = standard[:, near].flatten(0, 2)
        coefficients.append(fit_ridge(rows, goal[:, near].flatten(), penalty * len(rows)))
    return ShareRegression(
        scale,
        roots,
        torch.stack(coefficients),
        shares.new_ones(rounds),
        shares.new_zeros(rounds, classes),
    )


def _shrunk_shares(fitted: ShareRegression, features: Tensor) -> Tensor:
    standard = _standard(fitted.feature_scale, features)
    roots = torch.einsum("nrck,rk->nrc", standard, fitted.coefficients)
    scale = fitted.root_scale
    # A label with equal shares in all federations has no spread; it keeps its mean.
    spread = scale.deviation.where(scale.deviation.isfinite(), 0.0)
    squares = (roots * spread + scale.mean).clamp(min=0).square()
    total = squares.sum(-1, keepdim=True)
    uniform = torch.full_like(squares, 1 / squares.shape[-1])
    return torch.where(total > 0, squares / total, uniform)


def _slopes(estimates: Tensor, shares: Tensor) -> Float[Tensor, " rounds"]:
    """Return the slope of the estimates in the true shares, over federations and labels."""
    true = shares - shares.mean(0)
    moved = estimates - estimates.mean(0)
    energy = true.square().sum((0, 2))
    slopes: Tensor = (moved * true).sum((0, 2)) / energy.where(energy > 0, 1.0)
    return slopes.where(energy > 0, 1.0).clamp(min=MIN_SLOPE)


def _standard(scale: Standardizer, features: Tensor) -> Tensor:
    """Return the standardised features, limited, and a constant."""
    limited = scale.standardize(features).clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS)
    return torch.cat((limited, torch.ones_like(limited[..., :1])), -1)
