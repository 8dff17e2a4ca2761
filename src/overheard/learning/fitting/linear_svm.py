"""Linear support vector machines, one versus rest."""

import warnings
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.learning.threads import one_thread

TOLERANCE = 1e-3
"""Largest violation of the optimality conditions at which the fit stops; margins are of the
order of 1."""

MAX_SWEEPS = 500
"""Most sweeps over all examples; a few dozen are usual."""


@final
@dataclass(frozen=True, slots=True)
class LinearSvm:
    """A fitted linear support vector machine.

    Args:
        weight: weights of each class.
        intercept: the margin of each class at 0.

    """

    weight: Float[Tensor, "numbers classes"]
    intercept: Float[Tensor, " classes"]

    def margins(
        self, vectors: Float[Tensor, "examples dims"]
    ) -> Float[Tensor, "examples classes"]:
        """Compute the margin of each example for each class, in float64."""
        return vectors.double() @ self.weight + self.intercept


def fit_linear_svm(
    vectors: Float[Tensor, "examples dims"],
    labels: Int[Tensor, " examples"],
    classes: int,
    seed: Seed,
    *,
    cost: float = 1.0,
) -> LinearSvm:
    """Minimise for each class  |w|^2 / 2 + C sum_i max(0, 1 - y_i w x_i)^2,  y_i = 1 or -1.

    This is scikit-learn's `LinearSVC`, with the intercept as the weight of a constant 1, by
    dual coordinate descent (Hsieh et al. 2008).

    Args:
        vectors: one vector per example.
        labels: 0 to classes - 1, each at least once.
        classes: number of classes.
        seed: seed of the order of the examples.
        cost: C.

    """
    if classes < 2 or len(torch.unique(labels)) != classes:
        raise ValueError(f"expected examples of each of two classes or more, got {classes}")
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    machine = LinearSVC(
        C=cost,
        tol=TOLERANCE,
        max_iter=MAX_SWEEPS,
        dual=True,
        random_state=seed.value % 2**32,
    )
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The weights are sums of the examples, so coordinates in a basis of these are enough.
        # With 480 examples of 8,192 numbers this takes a tenth of the time.
        basis, coordinates = torch.linalg.qr(vectors.double().T)
        machine.fit(coordinates.T.numpy(), labels.numpy())
        weight, intercept = machine.coef_, machine.intercept_
        if classes == 2:  # one hyperplane stands for both
            weight, intercept = (np.concatenate((-one, one)) for one in (weight, intercept))
        return LinearSvm(basis @ torch.from_numpy(weight).T, torch.from_numpy(intercept))
