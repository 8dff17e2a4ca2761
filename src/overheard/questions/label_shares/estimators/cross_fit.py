"""Estimators of label shares from one round, evaluated on clients they were not trained on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.learning.fitting.ridge import fit_ridge
from overheard.learning.simplex import solve_each_for_shares
from overheard.learning.threads import single_thread
from overheard.questions.label_shares.estimators.class_tokens import ProbeReadings
from overheard.questions.label_shares.estimators.deep_set_regressor import (
    DeepSetRegressor,
    fit_deep_set_regressor,
)
from overheard.questions.label_shares.estimators.mlp_regressor import (
    MlpRegressor,
    fit_mlp_regressor,
)
from overheard.simulation.auxiliary_logits import mean_softmax

RIDGE = 1.0
"""Ridge penalty of the regression of the scale, in units of one virtual client."""

TINY = 1e-12


@final
@dataclass(frozen=True, slots=True)
class ScaledInversion:
    """Solves  db = kappa (I - P^T) pi  for pi, with a kappa fitted to virtual clients.

    db is the change of the output bias. P is the mean softmax by true class on held-out
    examples, averaged over before and after (the trapezoid rule). For SGD the equation is
    exact, and kappa is the sum of the rates of all steps (Ramakrishna and Dan 2022). For other
    optimizers, hidden sizes and defenses, some kappa is still right on average. Virtual clients
    have a known pi; they determine it by regressing its logarithm on size and on the lengths of
    the change.

    Args:
        weights: weights of that regression, one row per set of virtual clients.

    """

    weights: Float[Tensor, "teachers numbers"]

    def estimate_shares(
        self, readings: ProbeReadings
    ) -> Float[Tensor, "teachers clients classes"]:
        """Solve the equation with the scale from each set of virtual clients."""
        matrices, change = _equations(readings)
        kappas = (
            (_scale_features(readings) @ self.weights.T).clamp(-30, 30).exp()
        )  # (clients, teachers)
        goals = change / kappas.T[:, :, None]  # (teachers, clients, classes)
        systems = matrices.expand(len(goals), *matrices.shape)
        solved = solve_each_for_shares(systems.flatten(0, 1), goals.flatten(0, 1))
        return solved.view_as(goals)


def solve_with_known_scale(
    readings: ProbeReadings,
) -> list[Float[Tensor, "clients classes"]]:
    """Solve the equation of `ScaledInversion` with the kappa of the recipe; [] if unknown.

    A fitted kappa is a little wrong for each client, since what it is fitted to is noisy.
    """
    if readings.steps_scale is None:
        return []
    matrices, change = _equations(readings)
    return [solve_each_for_shares(matrices, change / readings.steps_scale.double()[:, None])]


def fit_scaled_inversion(
    readings: ProbeReadings,
    shares: Float[Tensor, "clients classes"],
    rows: Sequence[Int[Tensor, " _rows"]],
) -> ScaledInversion:
    """Fit the scale to each of these sets of virtual clients."""
    matrices, change = _equations(readings)
    direction = torch.einsum("vck,vk->vc", matrices, shares.double())  # (clients, classes)
    kappa = (direction * change).sum(1) / (direction.square().sum(1) + TINY)
    # No positive scale fits a client whose bias moved against the equation.
    is_fitting = kappa > TINY
    features, goal = _scale_features(readings), kappa.clamp(min=TINY).log()
    fitting = [own[is_fitting[own]] for own in rows]
    return ScaledInversion(
        torch.stack([_fit_scale(features[own], goal[own]) for own in fitting])
    )


def _equations(readings: ProbeReadings) -> tuple[Tensor, Tensor]:
    """Return each client's matrix (clients, classes, classes) and goal (clients, classes)."""
    after, before = mean_softmax(readings.outputs), mean_softmax(readings.broadcast_outputs)
    along = (after.double() + before.double()) / 2
    eye = torch.eye(along.shape[2], dtype=torch.float64)
    return eye - along.transpose(1, 2), readings.last_layer_change[..., -1].double()


def _scale_features(readings: ProbeReadings) -> Float[Tensor, "clients numbers"]:
    change = readings.last_layer_change.double()
    bias = (change[..., -1].norm(dim=1) + TINY).log()
    rows = (change[..., :-1].flatten(1).norm(dim=1) + TINY).log()
    sizes = readings.log_sizes
    known = torch.zeros_like(bias) if sizes is None else sizes.double()
    return torch.stack((known, bias, rows, torch.ones_like(bias)), 1)


def _fit_scale(
    numbers: Float[Tensor, "clients numbers"], goal: Float[Tensor, " clients"]
) -> Tensor:
    if not len(goal):
        return torch.zeros(numbers.shape[1], dtype=numbers.dtype)
    # Centred, so that features that are equal for all clients get no weight.
    centre, goal_mean = numbers.mean(0), goal.mean()
    centred = numbers - centre
    weights = fit_ridge(centred, goal - goal_mean, torch.full_like(centre, RIDGE))
    weights[-1] = goal_mean - (weights[:-1] * centre[:-1]).sum()
    return weights


HALVES = 2

NETWORKS = HALVES + 1
"""Estimators of each kind: one for quarters of each half, and one for all clients."""


@final
@dataclass(frozen=True, slots=True)
class CrossFit:
    """Two kinds of network and up to three formulas, fitted to one round's virtual clients.

    A real client differs from those that the networks were trained on in two ways: its examples
    are others, and none of them is repeated, however few the auxiliary examples are. Estimates
    of virtual clients are tested under the same conditions. There are three estimators of each
    kind. Two are trained on virtual clients with a quarter of the auxiliary examples each, all
    in one half, and tested on clients with the whole other half: new and twice as many
    different examples. If an error falls with one over the number of different examples, it is
    as large from a quarter to a half as from a half to arbitrarily many. The third estimator is
    trained on all virtual clients, and estimates real ones.

    Args:
        deep_sets: networks that treat the classes one by one.
        mlps: networks that take all features at once.
        inversion: solutions of the equation of the output bias, also inputs of `deep_sets`.
        virtual_estimates: of each virtual client, by the estimators that were trained on
            quarters of the other half. Those of clients with a whole half are the tests.

    """

    deep_sets: DeepSetRegressor
    mlps: MlpRegressor
    inversion: ScaledInversion
    virtual_estimates: Float[Tensor, "kinds clients classes"]

    def estimate_shares(
        self, readings: ProbeReadings
    ) -> Float[Tensor, "kinds clients classes"]:
        """Estimate new clients by the estimators trained on all virtual clients."""
        solved = self.inversion.estimate_shares(readings)
        return _estimate_all(self.deep_sets, self.mlps, readings, solved)[:, HALVES]

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
    on_quarter: Bool[Tensor, " clients"],
    steps: int,
    seed: Seed,
) -> CrossFit:
    """Fit all estimators to the virtual clients of one round; see `Simulation` for these."""
    rows = [((halves == half) & on_quarter).nonzero().flatten() for half in range(HALVES)]
    rows.append(torch.arange(len(halves)))
    if min(*map(len, rows), int((~on_quarter).sum())) < 2:
        raise ValueError(
            "each half needs 2 virtual clients or more that train on a quarter, and 2 of both "
            "on a half"
        )
    with single_thread():
        inversion = fit_scaled_inversion(readings, shares, rows)
        solved = inversion.estimate_shares(readings)
        tokens = fit_deep_set_regressor(
            readings, shares, solved, rows, steps, seed.child("tokens")
        )
        numbers = fit_mlp_regressor(readings, shares, rows, steps, seed.child("numbers"))
        estimates = _estimate_all(tokens, numbers, readings, solved)[:, 1 - halves, rows[-1]]
    return CrossFit(tokens, numbers, inversion, estimates)


def _estimate_all(
    deep_sets: DeepSetRegressor,
    mlps: MlpRegressor,
    readings: ProbeReadings,
    solved: Float[Tensor, "networks clients classes"],
) -> Float[Tensor, "kinds networks clients classes"]:
    """Return the estimates of each kind; those of the equation with a fitted scale are given.

    The last kinds are not fitted: the mean output on held-out examples, and the equation with
    a known scale.
    """
    fitted = (deep_sets.estimate_shares(readings, solved), mlps.estimate_shares(readings))
    mean_output = mean_softmax(readings.outputs).mean(1).to(solved)
    others = (mean_output, *solve_with_known_scale(readings))
    return torch.stack([*fitted, solved, *(one.expand_as(solved) for one in others)])
