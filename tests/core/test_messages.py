"""Messages and updates of weights."""

import torch

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Update,
    apply_update,
    count_bytes,
)

MIXED_WEIGHTS = {"w": torch.zeros(3, 2), "b": torch.zeros(2, dtype=torch.float16)}
"""6 x 4 + 2 x 2 bytes"""


def test_applying_an_update_changes_neither_start_nor_delta():
    start, delta = {"a": torch.tensor([1.0])}, {"a": torch.tensor([2.0])}
    apply_update(start, delta)
    assert start["a"].tolist() == [1.0]
    assert delta["a"].tolist() == [2.0]


def test_counts_each_number_at_its_width() -> None:
    assert count_bytes(Broadcast(MIXED_WEIGHTS)) == 28
    assert (
        count_bytes(Update(MIXED_WEIGHTS))
        == count_bytes(Aggregate(MIXED_WEIGHTS, frozenset()))
        == 28
    )
    inputs, labels = torch.zeros(2, 3), torch.zeros(2, 2)
    assert count_bytes(DistilledSet(inputs, labels, torch.zeros(2), torch.zeros(2))) == 56
