import math

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.probe import Scene
from overheard.simulation.update_norms import UpdateNorms
from tests.simulation.world import build

NONE = Examples(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64))


def read(*deltas: dict[str, torch.Tensor]) -> list[list[float]]:
    start = {"first": torch.zeros(2), "second": torch.zeros(1)}
    scene = Scene(0, start, build, 3, NONE, NONE, None, Seed(0), "cpu")
    return UpdateNorms().read(scene, deltas).tolist()


def test_the_whole_norm_stands_before_those_of_the_tensors() -> None:
    # (3, 4) has length 5, (12) 12, and all of it 13.
    (norms,) = read({"second": torch.tensor([12.0]), "first": torch.tensor([3.0, 4.0])})
    assert norms == pytest.approx([math.log(13), math.log(5), math.log(12)])


def test_a_change_of_nothing_is_a_number() -> None:
    (norms,) = read({"first": torch.zeros(2), "second": torch.zeros(1)})
    assert norms == pytest.approx([math.log(1e-12)] * 3)
