"""Chances from evidence: logistic fits of one statistic, and of weights between candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

STEPS = 100
"""Of L-BFGS, which on these few weights ends sooner."""

STEEPNESS = 10.0
"""Weights are softplus(STEEPNESS * v): they are 0 or more, of the order of 10 and more."""


@final
@dataclass(frozen=True, slots=True)
class Logit:
    """The chance 1 / (1 + exp(-(level + slope * statistic)))."""

    level: float
    slope: float

    def chance(self, statistic: float) -> float:
        """The chance at one value of the statistic."""
        power = -(self.level + self.slope * statistic)
        return 1 / (1 + exp(power)) if power < 700 else 0.0


def fit_logit(statistic: Float[Tensor, " cases"], holds: Bool[Tensor, " cases"]) -> Logit:
    """Platt's calibration (1999), both outcomes weighed as equally likely beforehand.

    In place of his smoothed targets, half the squared slope (by a standard deviation of the
    statistic) is added to the loss: outcomes told apart without fail keep a finite slope. Cases
    whose statistic is infinite are left out; where one outcome is left, the chance is 1/2.
    """
    finite = statistic.isfinite()
    told, held = statistic[finite].double(), holds[finite]
    if not bool(held.any()) or bool(held.all()):
        return Logit(0.0, 0.0)
    spread = float(told.std().clamp(min=1e-12))
    fit = LogisticRegression(class_weight="balanced").fit(
        (told / spread)[:, None].numpy(), held.numpy()
    )
    return Logit(float(fit.intercept_[0]), float(fit.coef_[0, 0]) / spread)


def fit_weights(
    trials: Sequence[
        tuple[
            Float[Tensor, "_cases users spaces"], Int[Tensor, " _cases"], Bool[Tensor, " users"]
        ]
    ],
) -> Float[Tensor, " spaces"]:
    """Weights of features, 0 or more, that make the true candidates likeliest.

    A conditional logit (McFadden 1974): P(user) is proportional to exp(weights . features).

    Args:
        trials: features of each candidate, the true one (-1 = none of them, left out), and who
            is a candidate at all.

    """
    cases = [
        (features[users >= 0].masked_fill(~able[None, :, None], 0), users[users >= 0], able)
        for features, users, able in trials
    ]
    free = torch.zeros(cases[0][0].shape[2], dtype=torch.float64, requires_grad=True)
    total = sum(len(users) for _, users, _ in cases)
    walk = torch.optim.LBFGS([free], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        walk.zero_grad()
        weights = softplus(STEEPNESS * free)
        value = torch.stack(
            [
                cross_entropy(
                    (features @ weights).masked_fill(~able, -1e9), users, reduction="sum"
                )
                for features, users, able in cases
            ]
        ).sum()
        # A little that draws weights back, so that users told apart without fail stay finite.
        value = value / total + 1e-5 * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        walk.step(loss)  # type: ignore[no-untyped-call]
    return softplus(STEEPNESS * free).detach()
