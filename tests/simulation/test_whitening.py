"""Fit and strength in the axes of the factors equal those of the whole covariance matrix."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.learning.layer_gradients import LayerGradients, TableGradients
from overheard.simulation.whitening import Factors, Whitening, fit_and_strength


def gradients(inputs: list[list[float]], slopes: list[list[float]]) -> LayerGradients:
    """Return the gradients of records with one position each."""
    return LayerGradients(
        torch.tensor(inputs, dtype=torch.float64).unsqueeze(1),
        torch.tensor(slopes, dtype=torch.float64).unsqueeze(1),
    )


def test_fit_and_strength_are_those_worked_by_hand() -> None:
    # E[x x'] = diag(2, 8), E[g g'] = diag(1, 4): the entries of J have variances
    # (2, 8; 8, 32), up to a factor.
    records = gradients([[2, 0], [0, 4]], [[2**0.5, 0], [0, 8**0.5]])
    whitening = Whitening.of_factors(Factors.of_records([records]), ridge=0.0)
    # The update's square is 100, the variances' sum is 50: the factor is 2 and C is
    # (4, 16; 16, 64).
    update = torch.tensor([[[-8.0, 0.0], [0.0, 6.0]]], dtype=torch.float64)
    # J = (1, 2)' (1, 1) = (1, 1; 2, 2).  N = -(1 * -8 / 4 + 2 * 6 / 64) = 2 - 3 / 16.
    # S = 1 / 4 + 1 / 16 + 4 / 16 + 4 / 64 = 5 / 8.
    fit, strength = fit_and_strength(gradients([[1, 1]], [[1, 2]]), whitening, update)
    assert fit.item() == pytest.approx(2 - 3 / 16)
    assert strength.item() == pytest.approx(5 / 8)


def test_a_table_has_the_fit_and_strength_of_the_diagonal_of_its_rows() -> None:
    # Three rows of two columns. The first record reads rows 0 and 2, the second row 2 twice,
    # which is one slope, and a slot is left over.
    rows = torch.tensor([[0, 2], [2, 0]])
    slopes = torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[2.0, 2.0], [0.0, 0.0]]])
    records = TableGradients(3, rows, slopes.double())
    factors = Factors.of_records([records])
    assert factors.inputs.tolist() == [0.5, 0.0, 6.0]  # (4 + 8) / 2 at row 2
    assert factors.outputs.tolist() == [[2.5, 2.0], [2.0, 4.0]]
    update = torch.randn(1, 2, 3, generator=Seed(1).generator(), dtype=torch.float64)
    found = fit_and_strength(records, Whitening.of_factors(factors), update, 0.1)
    matrices = records.matrices()
    dense = LayerGradients(matrices, torch.eye(2).double().expand(2, 2, 2))
    diagonal = Factors(torch.diag(factors.inputs), factors.outputs)
    expected = fit_and_strength(dense, Whitening.of_factors(diagonal), update, 0.1)
    torch.testing.assert_close(found, expected)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    positions=st.integers(1, 3),
    noise=st.floats(0, 2),
    ridge=st.floats(0.01, 1),
)
def test_axes_give_what_the_whole_covariance_matrix_gives(
    seed: int, positions: int, noise: float, ridge: float
) -> None:
    generator = Seed(seed).generator()

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    records = LayerGradients(draw(9, positions, 3), draw(9, positions, 2))
    factors, update = Factors.of_records([records]), draw(1, 2, 3)
    fit, strength = fit_and_strength(
        records, Whitening.of_factors(factors, ridge), update, noise
    )
    identity = [
        torch.eye(len(one), dtype=torch.float64) for one in (factors.outputs, factors.inputs)
    ]
    outputs, inputs = (
        one + ridge * one.trace() / len(one) * unit
        for one, unit in zip((factors.outputs, factors.inputs), identity, strict=True)
    )
    square = float(update.square().sum())
    signal = max(square - 6 * noise, 1e-3 * square) / (outputs.trace() * inputs.trace())
    covariance = signal * torch.kron(outputs, inputs) + noise * torch.eye(
        6, dtype=torch.float64
    )
    rows = records.matrices().flatten(1)
    solved = torch.linalg.solve(covariance, rows.T)
    torch.testing.assert_close(fit[0], -(update.flatten() @ solved))
    torch.testing.assert_close(strength[0], (rows * solved.T).sum(1))
