import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.probe import ProbeContext
from overheard.simulation.update_norms import MOST_INPUTS, InputNorms, UpdateNorms
from tests.simulation.small_run import build

NO_EXAMPLES = Examples(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64))


def read(*deltas: dict[str, torch.Tensor]) -> list[list[float]]:
    start = {"first": torch.zeros(2), "second": torch.zeros(1)}
    context = ProbeContext(0, start, build, 3, NO_EXAMPLES, NO_EXAMPLES, None, Seed(0), "cpu")
    return UpdateNorms().read(context, deltas).tolist()


def test_the_norm_of_the_whole_update_comes_first() -> None:
    # (3, 4) has norm 5, (12) has norm 12, and the whole update 13.
    (norms,) = read({"second": torch.tensor([12.0]), "first": torch.tensor([3.0, 4.0])})
    assert norms == pytest.approx([math.log(13), math.log(5), math.log(12)])


def test_an_update_of_zeros_has_finite_norms() -> None:
    (norms,) = read({"first": torch.zeros(2), "second": torch.zeros(1)})
    assert norms == pytest.approx([math.log(1e-12)] * 3)


def read_inputs(
    *deltas: dict[str, torch.Tensor], build: Callable[[], nn.Module] = build
) -> torch.Tensor:
    start = {name: torch.zeros_like(weight) for name, weight in deltas[0].items()}
    context = ProbeContext(0, start, build, 3, NO_EXAMPLES, NO_EXAMPLES, None, Seed(0), "cpu")
    return InputNorms().read(context, deltas)


def test_the_change_of_each_input_is_that_of_its_column() -> None:
    # The columns have mean squares 1, 4 and 1; a bias before the matrix is no input.
    matrix = torch.tensor([[1.0, 2.0, -1.0], [1.0, -2.0, 1.0]])
    (reading,) = read_inputs({"bias": torch.ones(2), "matrix": matrix})
    logarithms = torch.tensor([math.log(0.5), math.log(2), math.log(0.5)])
    assert reading.tolist() == pytest.approx(
        (logarithms - logarithms.mean()).tolist(), abs=1e-3
    )


def test_the_inputs_of_an_embedding_are_words() -> None:
    # Words 0 and 2 change by a mean square of 1, word 1 by 4.
    delta = {"0.weight": torch.tensor([[1.0, 1.0], [2.0, -2.0], [1.0, -1.0]])}
    (reading,) = read_inputs(
        delta, build=lambda: nn.Sequential(nn.EmbeddingBag(3, 2), nn.Linear(2, 3))
    )
    assert float(reading[1] - reading[0]) == pytest.approx(math.log(4), abs=1e-3)
    assert float(reading[2]) == float(reading[0])


def test_a_column_in_other_units_moves_and_the_length_does_not() -> None:
    matrix = torch.randn(5, 4, generator=Seed(1).generator())
    other = matrix * torch.tensor([1.0, 1.0, 3.0, 1.0])
    first, longer, moved = read_inputs({"m": matrix}, {"m": 7 * matrix}, {"m": other})
    assert torch.allclose(first, longer, atol=1e-5)
    assert float(moved[2] - moved[0] - first[2] + first[0]) == pytest.approx(
        2 * math.log(3), abs=1e-2
    )


def test_many_inputs_are_pooled_with_their_neighbours() -> None:
    matrix = torch.ones(1, 2 * MOST_INPUTS)
    matrix[0, :2] = 3.0
    (reading,) = read_inputs({"m": matrix})
    assert len(reading) == MOST_INPUTS
    assert float(reading[0] - reading[1]) == pytest.approx(math.log(9), abs=1e-3)
    assert torch.equal(reading[1:], reading[1:2].expand(MOST_INPUTS - 1))


def test_inputs_of_an_update_of_zeros_are_equal_and_a_diverged_one_is_not_finite() -> None:
    zeros, lost = torch.zeros(2, 3), torch.full((2, 3), math.nan)
    still, diverged = read_inputs({"m": zeros}, {"m": lost})
    assert still.tolist() == [0.0, 0.0, 0.0]
    assert not diverged.isfinite().any()


def test_a_model_without_matrices_has_the_entries_of_its_first_vector() -> None:
    (reading,) = read_inputs({"scale": torch.tensor([1.0, 1.0, 2.0])})
    assert float(reading[2] - reading[0]) == pytest.approx(math.log(4), abs=1e-3)
