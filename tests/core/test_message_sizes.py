"""The size of a message is that of its tensors."""

import torch

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    MissingReply,
    Update,
    count_bytes,
)

WEIGHTS = {"w": torch.zeros(3, 2), "b": torch.zeros(2, dtype=torch.float16)}
"""6 x 4 + 2 x 2 bytes"""


def test_counts_each_number_at_its_width() -> None:
    assert count_bytes(Broadcast(WEIGHTS)) == 28
    assert count_bytes(Update(WEIGHTS)) == count_bytes(Aggregate(WEIGHTS, frozenset())) == 28
    inputs, labels = torch.zeros(2, 3), torch.zeros(2, 2)
    assert count_bytes(DistilledSet(inputs, labels, torch.zeros(2), torch.zeros(2))) == 56


def test_messages_without_tensors_count_nothing() -> None:
    assert count_bytes(Evaluation({"loss": 1.0}, 9)) == count_bytes(MissingReply("late")) == 0
