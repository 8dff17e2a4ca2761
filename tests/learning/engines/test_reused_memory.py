"""Memory is shared by the results of one name, and by no others."""

import torch

from overheard.learning.engines.stacked_mlp import ReusedMemory

LIKE = torch.zeros((), dtype=torch.float64)


def test_results_of_other_names_stay() -> None:
    memory = ReusedMemory()
    first = memory.take("first", LIKE, 3).fill_(1.0)
    memory.take("second", LIKE, 3).fill_(2.0)
    assert first.tolist() == [1.0, 1.0, 1.0]
