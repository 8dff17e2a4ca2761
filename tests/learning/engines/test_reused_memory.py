"""Memory is shared by the results of one name, and by no others."""

import torch

from overheard.learning.engines.reused_memory import ReusedMemory

LIKE = torch.zeros((), dtype=torch.float64)


def test_results_of_one_name_share_memory_that_grows() -> None:
    memory = ReusedMemory()
    first = memory.take("first", LIKE, 2, 3)
    smaller = memory.take("first", LIKE, 4)
    assert (first.shape, smaller.shape, first.dtype) == ((2, 3), (4,), torch.float64)
    assert first.data_ptr() == smaller.data_ptr()
    larger = memory.take("first", LIKE, 7)
    assert larger.data_ptr() != first.data_ptr()
    assert memory.take("first", LIKE, 2, 3).data_ptr() == larger.data_ptr()


def test_results_of_other_names_stay() -> None:
    memory = ReusedMemory()
    first = memory.take("first", LIKE, 3).fill_(1.0)
    memory.take("second", LIKE, 3).fill_(2.0)
    assert first.tolist() == [1.0, 1.0, 1.0]
