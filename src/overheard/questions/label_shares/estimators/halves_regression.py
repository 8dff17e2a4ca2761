"""A ridge regression of label shares, tested on virtual clients with other examples."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.learning.simplex import normalize_rows_to_shares

PENALTIES = tuple(10.0 ** np.arange(-2, 5))
"""Ridge penalties, of which the one with the smallest leave-one-out error is taken."""

LARGEST_FEATURE = 5.0
"""Standard deviations at which features are cut off."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class HalvesRegression:
    """Regressions on the virtual clients of each half of the attacker's examples.

    Args:
        models: the regression of each half; of scikit-learn.
        means: the means of the features.
        deviations: their standard deviations.
        tested: the estimate of each virtual client by the regression of the other half.

    """

    # Any: scikit-learn has no types.
    models: tuple[Any, ...]
    means: Float[Tensor, " features"]
    deviations: Float[Tensor, " features"]
    tested: Float[Tensor, "clients classes"]

    def estimate(
        self, features: Float[Tensor, "clients features"]
    ) -> Float[Tensor, "clients classes"]:
        """Return the mean estimate of both halves."""
        scaled = _scaled(features, self.means, self.deviations)
        both = torch.stack([_predict(one, scaled) for one in self.models])
        return normalize_rows_to_shares(both.mean(0))


def fit_halves_regression(
    features: Float[Tensor, "clients features"],
    shares: Float[Tensor, "clients classes"],
    halves: Int[Tensor, " clients"],
) -> HalvesRegression:
    """Fit a regression to the virtual clients of each half, and test it on the other one."""
    from sklearn.linear_model import RidgeCV  # only here: the import takes a second

    means, deviations = features.mean(0), features.std(0, correction=0)
    deviations = torch.where(deviations > 0, deviations, torch.inf)
    scaled = _scaled(features, means, deviations)
    models, tested = [], torch.zeros_like(shares)
    for half in (0, 1):
        mine = halves == half
        models.append(RidgeCV(PENALTIES).fit(scaled[mine].numpy(), shares[mine].numpy()))
        tested[~mine] = _predict(models[-1], scaled[~mine])
    return HalvesRegression(tuple(models), means, deviations, tested)


def _scaled(features: Tensor, means: Tensor, deviations: Tensor) -> Tensor:
    return ((features - means) / deviations).clamp(-LARGEST_FEATURE, LARGEST_FEATURE)


# Any: scikit-learn has no types.
def _predict(model: Any, features: Tensor) -> Tensor:
    return normalize_rows_to_shares(torch.from_numpy(model.predict(features.numpy())))
