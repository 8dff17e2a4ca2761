"""A regression of the numbers of clients on features of their updates, with its errors."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

PENALTIES = tuple(10.0 ** np.arange(-3, 5))
"""Ridge penalties, of which the one with the smallest leave-one-out error is taken."""

LARGEST_FEATURE = 8.0
"""Standard deviations at which features are clipped."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NumberRegression:
    """Ridge regressions, one fitted to the virtual clients of each half.

    Args:
        models: the regression of each half; of scikit-learn.
        means: the means of the features.
        deviations: their standard deviations.
        unseen: the estimates of all virtual clients, each by the regression of the other half,
            which has seen neither the client nor its examples.

    """

    # Any: scikit-learn has no types.
    models: tuple[Any, Any]
    means: Float[np.ndarray, " features"]
    deviations: Float[np.ndarray, " features"]
    unseen: Float[np.ndarray, "clients numbers"]

    def estimate(
        self, features: Float[np.ndarray, "clients features"]
    ) -> Float[np.ndarray, "clients numbers"]:
        """Return the mean estimate of both halves for each client."""
        scaled = _scale(features, self.means, self.deviations)
        means: np.ndarray = np.mean([_predict(one, scaled) for one in self.models], axis=0)
        return means


def fit_number_regression(
    features: Float[np.ndarray, "clients features"],
    numbers: Float[np.ndarray, "clients numbers"],
    halves: Int[np.ndarray, " clients"],
) -> NumberRegression:
    """Fit a regression to the virtual clients of each half, and test it on the other one."""
    from sklearn.linear_model import RidgeCV  # only here: the import takes a second

    means, deviations = features.mean(0), features.std(0)
    deviations = np.where(deviations > 0, deviations, np.inf)
    scaled = _scale(features, means, deviations)
    first, second = (
        RidgeCV(PENALTIES).fit(scaled[halves == half], numbers[halves == half])
        for half in (0, 1)
    )
    unseen = np.where((halves == 0)[:, None], _predict(second, scaled), _predict(first, scaled))
    return NumberRegression((first, second), means, deviations, unseen)


def _scale(
    features: Float[np.ndarray, "clients features"],
    means: Float[np.ndarray, " features"],
    deviations: Float[np.ndarray, " features"],
) -> Float[np.ndarray, "clients features"]:
    scaled = (features - means) / deviations
    clipped: np.ndarray = np.clip(scaled, -LARGEST_FEATURE, LARGEST_FEATURE)
    return clipped


# Any: scikit-learn has no types.
def _predict(
    model: Any, features: Float[np.ndarray, "clients features"]
) -> Float[np.ndarray, "clients numbers"]:
    predicted: np.ndarray = model.predict(features)
    return predicted.reshape(len(features), -1)
