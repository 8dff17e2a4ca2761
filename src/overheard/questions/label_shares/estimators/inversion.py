"""Label shares that solve the equation of the output bias, its scale learned by imitation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.learning.fitting.ridge import fit_ridge
from overheard.learning.simplex import shares_that_solve
from overheard.questions.label_shares.estimators.class_tokens import Readings
from overheard.simulation.answers import mean_softmax

RIDGE = 1.0
"""Of the regression of the scale, in units of one virtual client."""

TINY = 1e-12


@final
@dataclass(frozen=True, slots=True)
class Inversion:
    """Solves  db = kappa (I - P^T) pi  for pi, with a kappa learned from virtual clients.

    db is the change of the output bias, P the mean softmax by true class on held-out examples,
    before and after on average (the trapezoid rule): exact for SGD, where kappa is the sum of
    the rates of all steps (Ramakrishna and Dan 2022). Of other optimizers, hidden sizes and
    defenses some kappa is still right on average: the virtual clients, of whom pi is known, say
    which, by a regression of its logarithm on size and on the lengths of the change.

    Args:
        weights: of that regression, one a set of virtual clients that taught it.

    """

    weights: Float[Tensor, "teachers numbers"]

    def read(self, readings: Readings) -> Float[Tensor, "teachers clients classes"]:
        """The shares that solve the equation, as each set of teachers has the scale."""
        matrices, change = _equations(readings)
        kappas = (
            (_lengths(readings) @ self.weights.T).clamp(-30, 30).exp()
        )  # (clients, teachers)
        return torch.stack([_solve(matrices, change / kappa[:, None]) for kappa in kappas.T])


def learn_inversion(
    readings: Readings,
    shares: Float[Tensor, "clients classes"],
    rows: Sequence[Int[Tensor, " _rows"]],
) -> Inversion:
    """Learn the scale from each of these sets of virtual clients."""
    matrices, change = _equations(readings)
    told = torch.einsum("vck,vk->vc", matrices, shares.double())  # (clients, classes)
    kappa = (told * change).sum(1) / (told.square().sum(1) + TINY)
    # Of a client whose bias moved against the equation no scale is right.
    known = kappa > TINY
    numbers, goal = _lengths(readings), kappa.clamp(min=TINY).log()
    return Inversion(
        torch.stack([_ridge(numbers[own[known[own]]], goal[own[known[own]]]) for own in rows])
    )


def _equations(readings: Readings) -> tuple[Tensor, Tensor]:
    """Matrix (clients, classes, classes) and goal (clients, classes) of each client."""
    after, before = mean_softmax(readings.answers), mean_softmax(readings.before)
    along = (after.double() + before.double()) / 2
    eye = torch.eye(along.shape[2], dtype=torch.float64)
    return eye - along.transpose(1, 2), readings.change[..., -1].double()


def _lengths(readings: Readings) -> Float[Tensor, "clients numbers"]:
    change = readings.change.double()
    bias = (change[..., -1].norm(dim=1) + TINY).log()
    rows = (change[..., :-1].flatten(1).norm(dim=1) + TINY).log()
    sizes = readings.log_sizes
    known = torch.zeros_like(bias) if sizes is None else sizes.double()
    return torch.stack((known, bias, rows, torch.ones_like(bias)), 1)


def _ridge(
    numbers: Float[Tensor, "clients numbers"], goal: Float[Tensor, " clients"]
) -> Tensor:
    if not len(goal):
        return torch.zeros(numbers.shape[1], dtype=numbers.dtype)
    # Around the mean: what does not differ among the clients then gets no weight.
    centre, middle = numbers.mean(0), goal.mean()
    around = numbers - centre
    weights = fit_ridge(around, goal - middle, torch.full_like(centre, RIDGE))
    weights[-1] = middle - (weights[:-1] * centre[:-1]).sum()
    return weights


def _solve(matrices: Tensor, goals: Tensor) -> Float[Tensor, "clients classes"]:
    pairs = zip(matrices, goals, strict=True)
    return torch.stack([shares_that_solve(matrix, goal) for matrix, goal in pairs])
