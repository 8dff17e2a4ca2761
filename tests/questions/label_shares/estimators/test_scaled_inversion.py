from dataclasses import replace

import torch

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import ProbeReadings
from overheard.questions.label_shares.estimators.cross_fit import (
    fit_scaled_inversion,
    solve_with_known_scale,
)

CLIENTS, CLASSES = 40, 3

# Mean softmax by true class: each class takes a part of the others' examples.
P = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])

SHARES = torch.rand(CLIENTS, CLASSES, generator=Seed(0).generator()).double().softmax(1)

EVERYBODY = [torch.arange(CLIENTS)]


def answers(matrix: torch.Tensor, clients: int) -> torch.Tensor:
    rows = torch.cat((torch.zeros(CLASSES, CLASSES), matrix, torch.zeros(1, CLASSES)))
    return rows.expand(clients, -1, -1)


def moved_by(shares: torch.Tensor, kappa: torch.Tensor) -> ProbeReadings:
    """Return clients whose bias changed by kappa (I - P^T) pi, as under SGD with constant P."""
    bias = kappa[:, None] * (shares - shares @ P.double())
    change = torch.zeros(len(shares), CLASSES, 4)
    change[..., -1] = bias.float()
    change[..., 0] = kappa[:, None].float()
    said = answers(P, len(shares))
    return ProbeReadings(change, said, said[0], torch.zeros(len(shares), 11, CLASSES))


def test_finds_the_shares_if_the_equation_holds_with_scale_1():
    kappa = torch.full((CLIENTS,), 0.7, dtype=torch.float64)
    inversion = fit_scaled_inversion(moved_by(SHARES, kappa), SHARES, EVERYBODY)
    fresh = torch.tensor([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]], dtype=torch.float64)
    (told,) = inversion.estimate_shares(moved_by(fresh, kappa[:2]))
    torch.testing.assert_close(told, fresh, atol=0.02, rtol=0)


def test_fits_a_scale_that_grows_with_the_change():
    kappa = torch.linspace(0.1, 2.0, CLIENTS).double()
    inversion = fit_scaled_inversion(moved_by(SHARES, kappa), SHARES, EVERYBODY)
    fresh = torch.tensor([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]], dtype=torch.float64)
    (told,) = inversion.estimate_shares(moved_by(fresh, torch.tensor([0.3, 1.5]).double()))
    assert float((told - fresh).abs().sum(1).max()) < 0.1


def test_each_set_of_virtual_clients_has_its_own_scale():
    kappa = torch.cat((torch.full((20,), 0.5), torch.full((20,), 1.0))).double()
    halves = [torch.arange(20), torch.arange(20, 40)]
    inversion = fit_scaled_inversion(moved_by(SHARES, kappa), SHARES, halves)
    assert inversion.weights.shape == (2, 4)
    fresh = torch.tensor([[0.8, 0.1, 0.1]], dtype=torch.float64)
    told = inversion.estimate_shares(moved_by(fresh, kappa[:1]))  # (teachers, 1, classes)
    # The scale from clients that moved like this one is correct.
    assert float((told[0, 0] - fresh[0]).abs().sum()) < 0.05


def test_a_known_scale_finds_the_shares_of_each_client():
    kappa = torch.linspace(0.1, 2.0, CLIENTS).double()
    readings = moved_by(SHARES, kappa)
    (told,) = solve_with_known_scale(replace(readings, steps_scale=kappa.float()))
    torch.testing.assert_close(told, SHARES, atol=1e-5, rtol=0)
    assert solve_with_known_scale(readings) == []


def test_a_zero_change_gives_finite_shares():
    kappa = torch.zeros(CLIENTS, dtype=torch.float64)
    inversion = fit_scaled_inversion(moved_by(SHARES, kappa), SHARES, EVERYBODY)
    (told,) = inversion.estimate_shares(moved_by(SHARES[:3], kappa[:3]))
    assert bool(told.isfinite().all())
    torch.testing.assert_close(told.sum(1), torch.ones(3, dtype=torch.float64))
