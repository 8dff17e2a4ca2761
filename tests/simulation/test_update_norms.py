import math

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.probe import ProbeContext
from overheard.simulation.update_norms import UpdateNorms
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
