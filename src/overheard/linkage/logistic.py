"""Logistic models that turn evidence into probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

MAX_STEPS = 100
"""Most steps of L-BFGS; with these few weights it converges sooner."""

STEEPNESS = 10.0
"""Weights are softplus(STEEPNESS * v): 0 or more, and typically 10 or more."""


@final
@dataclass(frozen=True, slots=True)
class LogisticModel:
    """The probability 1 / (1 + exp(-(level + slope * statistic)))."""

    intercept: float
    slope: float

    def probability(self, statistic: float) -> float:
        """Return the probability at one value of the statistic."""
        power = -(self.intercept + self.slope * statistic)
        return 1 / (1 + exp(power)) if power < 700 else 0.0


def fit_logistic(
    statistic: Float[Tensor, " cases"], holds: Bool[Tensor, " cases"]
) -> LogisticModel:
    """Fit Platt's calibration (1999) with equal prior probability of both outcomes.

    In place of Platt's smoothed targets, half the squared slope (per standard deviation of the
    statistic) is added to the loss. This keeps the slope finite where the outcomes separate
    perfectly. Cases with an infinite statistic are dropped. If only one outcome remains, the
    probability is 1/2.
    """
    from sklearn.linear_model import LogisticRegression

    finite = statistic.isfinite()
    values, outcomes = statistic[finite].double(), holds[finite]
    if not bool(outcomes.any()) or bool(outcomes.all()):
        return LogisticModel(0.0, 0.0)
    deviation = float(values.std().clamp(min=1e-12))
    fit = LogisticRegression(class_weight="balanced").fit(
        (values / deviation)[:, None].numpy(), outcomes.numpy()
    )
    return LogisticModel(float(fit.intercept_[0]), float(fit.coef_[0, 0]) / deviation)


def fit_conditional_logit(
    trials: Sequence[
        tuple[
            Float[Tensor, "_cases users spaces"], Int[Tensor, " _cases"], Bool[Tensor, " users"]
        ]
    ],
) -> Float[Tensor, " spaces"]:
    """Fit feature weights, 0 or more, that maximise the likelihood of the true users.

    A conditional logit (McFadden 1974): P(user) is proportional to exp(weights . features).

    Args:
        trials: triples of the features of each user, the index of the true user (-1 = unknown
            user, dropped), and which users are candidates.

    """
    cases = [
        (
            features[users >= 0].masked_fill(~is_candidate[None, :, None], 0),
            users[users >= 0],
            is_candidate,
        )
        for features, users, is_candidate in trials
    ]
    free = torch.zeros(cases[0][0].shape[2], dtype=torch.float64, requires_grad=True)
    total = sum(len(users) for _, users, _ in cases)
    optimizer = torch.optim.LBFGS([free], max_iter=MAX_STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        weights = softplus(STEEPNESS * free)
        value = torch.stack(
            [
                cross_entropy(
                    (features @ weights).masked_fill(~is_candidate, -1e9),
                    users,
                    reduction="sum",
                )
                for features, users, is_candidate in cases
            ]
        ).sum()
        # A small penalty keeps weights finite where users separate perfectly.
        value = value / total + 1e-5 * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    return softplus(STEEPNESS * free).detach()
