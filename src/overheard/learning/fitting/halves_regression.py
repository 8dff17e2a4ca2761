"""Ridge regressions on virtual clients, tested on those with examples of the other half."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int


@final
@dataclass(frozen=True, slots=True, eq=False)
class HalvesRegression:
    """Ridge regressions, one fitted to the virtual clients of each half.

    Args:
        models: the regression of each half; of scikit-learn.
        means: the means of the features.
        deviations: their standard deviations.
        largest: deviations from the mean at which features are clipped.
        unseen: the estimates of all virtual clients, each by the regression of the other half,
            which has seen neither the client nor its examples.

    """

    # Any: scikit-learn has no types.
    models: tuple[Any, Any]
    means: Float[np.ndarray, " features"]
    deviations: Float[np.ndarray, " features"]
    largest: float
    unseen: Float[np.ndarray, "clients numbers"]

    def estimates(
        self, features: Float[np.ndarray, "clients features"]
    ) -> Float[np.ndarray, "halves clients numbers"]:
        """Return the estimate of each half for each client."""
        scaled = _scale(features, self.means, self.deviations, self.largest)
        return np.stack([_predict(one, scaled) for one in self.models])


def fit_halves_regression(
    features: Float[np.ndarray, "clients features"],
    numbers: Float[np.ndarray, "clients numbers"],
    halves: Int[np.ndarray, " clients"],
    *,
    penalties: tuple[float, ...],
    largest: float,
) -> HalvesRegression:
    """Fit a regression to the virtual clients of each half, and test it on the other one.

    Args:
        features: of the update of each virtual client.
        numbers: what is estimated.
        halves: 0 or 1, the half of the examples that each virtual client's are from.
        penalties: ridge penalties, of which the one with the smallest leave-one-out error is
            taken.
        largest: standard deviations from the mean at which features are clipped.

    """
    from sklearn.linear_model import RidgeCV  # only here: the import takes a second

    means, deviations = features.mean(0), features.std(0)
    deviations = np.where(deviations > 0, deviations, np.inf)
    scaled = _scale(features, means, deviations, largest)
    first, second = (
        RidgeCV(penalties).fit(scaled[halves == half], numbers[halves == half])
        for half in (0, 1)
    )
    unseen = np.where((halves == 0)[:, None], _predict(second, scaled), _predict(first, scaled))
    return HalvesRegression((first, second), means, deviations, largest, unseen)


def _scale(
    features: Float[np.ndarray, "clients features"],
    means: Float[np.ndarray, " features"],
    deviations: Float[np.ndarray, " features"],
    largest: float,
) -> Float[np.ndarray, "clients features"]:
    scaled: np.ndarray = np.clip((features - means) / deviations, -largest, largest)
    return scaled


# Any: scikit-learn has no types.
def _predict(
    model: Any, features: Float[np.ndarray, "clients features"]
) -> Float[np.ndarray, "clients numbers"]:
    predicted: np.ndarray = model.predict(features)
    return predicted.reshape(len(features), -1)
