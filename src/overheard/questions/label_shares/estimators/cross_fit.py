"""Estimators of label shares from one round, evaluated on clients they were not trained on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.learning.threads import one_thread
from overheard.questions.label_shares.estimators.class_tokens import ProbeReadings
from overheard.questions.label_shares.estimators.deep_set_regressor import (
    DeepSetRegressor,
    fit_deep_set_regressor,
)
from overheard.questions.label_shares.estimators.mlp_regressor import (
    MlpRegressor,
    fit_mlp_regressor,
)
from overheard.questions.label_shares.estimators.scaled_inversion import (
    ScaledInversion,
    fit_scaled_inversion,
)

HALVES = 2

NETWORKS = HALVES + 1
"""Estimators of each kind: one for each half, and one trained on both."""


@final
@dataclass(frozen=True, slots=True)
class CrossFit:
    """Two kinds of network and one formula, fitted to one round's virtual clients.

    There are three estimators of each kind. Two are trained on the virtual clients of one half
    of the auxiliary examples each; the clients of the other half are new to them, as every real
    client is. The third is trained on all virtual clients and has the most examples.

    Args:
        deep_sets: networks that treat the classes one by one.
        mlps: networks that take all features at once.
        inversion: solutions of the equation of the output bias, also inputs of `deep_sets`.
        virtual_estimates: out-of-sample estimates for each virtual client, by the estimator
            trained on the other half.

    """

    deep_sets: DeepSetRegressor
    mlps: MlpRegressor
    inversion: ScaledInversion
    virtual_estimates: Float[Tensor, "kinds clients classes"]

    def estimate_shares(
        self, readings: ProbeReadings
    ) -> Float[Tensor, "kinds networks clients classes"]:
        """Estimate new clients with the networks of either half, then those of both."""
        solved = self.inversion.estimate_shares(readings)
        return _estimate_all(self.deep_sets, self.mlps, readings, solved)

    def tensors(self) -> dict[str, Tensor]:
        """Return all fitted tensors by name, for `from_tensors`."""
        tensors = {"of_virtual": self.virtual_estimates, "inversion": self.inversion.weights}
        return tensors | self.deep_sets.tensors() | self.mlps.tensors()

    @staticmethod
    def from_tensors(tensors: Mapping[str, Tensor]) -> "CrossFit":
        """Restore the estimators from `tensors`."""
        inversion = ScaledInversion(tensors["inversion"])
        classes = tensors["of_virtual"].shape[2]
        return CrossFit(
            DeepSetRegressor.from_tensors(tensors, classes, NETWORKS),
            MlpRegressor.from_tensors(tensors, classes, NETWORKS),
            inversion,
            tensors["of_virtual"],
        )


def fit_with_cross_fitting(
    readings: ProbeReadings,
    shares: Float[Tensor, "clients classes"],
    halves: Int[Tensor, " clients"],
    steps: int,
    seed: Seed,
) -> CrossFit:
    """Fit all estimators to the virtual clients of one round."""
    rows = [(halves == half).nonzero().flatten() for half in range(HALVES)]
    rows.append(torch.arange(len(halves)))
    if min(map(len, rows)) < 2:
        raise ValueError("each half needs 2 virtual clients or more")
    with one_thread():
        inversion = fit_scaled_inversion(readings, shares, rows)
        solved = inversion.estimate_shares(readings)
        tokens = fit_deep_set_regressor(
            readings, shares, solved, rows, steps, seed.child("tokens")
        )
        numbers = fit_mlp_regressor(readings, shares, rows, steps, seed.child("numbers"))
        clients = torch.arange(len(shares))
        estimates = _estimate_all(tokens, numbers, readings, solved)[:, 1 - halves, clients]
    return CrossFit(tokens, numbers, inversion, estimates)


def _estimate_all(
    deep_sets: DeepSetRegressor,
    mlps: MlpRegressor,
    readings: ProbeReadings,
    solved: Float[Tensor, "networks clients classes"],
) -> Float[Tensor, "kinds networks clients classes"]:
    """Return the estimates of each kind; those of the formula are given."""
    networks = (deep_sets.estimate_shares(readings, solved), mlps.estimate_shares(readings))
    return torch.stack([*networks, solved])
