"""Messages and updates of weights."""

from dataclasses import FrozenInstanceError

import pytest
import torch

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    MissingReply,
    Update,
    apply_update,
    count_bytes,
)
from overheard.core.parties import client

MIXED_WEIGHTS = {"w": torch.zeros(3, 2), "b": torch.zeros(2, dtype=torch.float16)}
"""6 x 4 + 2 x 2 bytes"""


def test_applying_an_update_adds_its_delta():
    start = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([[3.0]])}
    delta = {"b": torch.tensor([[-1.0]]), "a": torch.tensor([0.5, -2.0])}
    end = apply_update(start, delta)
    assert list(end) == ["a", "b"]
    assert end["a"].tolist() == [1.5, 0.0]
    assert end["b"].tolist() == [[2.0]]


def test_applying_an_update_changes_neither_start_nor_delta():
    start, delta = {"a": torch.tensor([1.0])}, {"a": torch.tensor([2.0])}
    apply_update(start, delta)
    assert start["a"].tolist() == [1.0]
    assert delta["a"].tolist() == [2.0]


def test_refuses_a_delta_without_one_of_the_weights():
    with pytest.raises(KeyError, match="a"):
        apply_update({"a": torch.zeros(1)}, {})


def test_default_metrics_cannot_be_changed():
    update = Update({})
    with pytest.raises(TypeError):
        update.metrics["loss"] = 1.0  # type: ignore[index]
    assert dict(Update({}).metrics) == {}


def test_an_update_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Update({}).examples = 3  # type: ignore[misc]


def test_clients_are_named_by_number():
    assert client(0) == "client/0"


def test_counts_each_number_at_its_width() -> None:
    assert count_bytes(Broadcast(MIXED_WEIGHTS)) == 28
    assert (
        count_bytes(Update(MIXED_WEIGHTS))
        == count_bytes(Aggregate(MIXED_WEIGHTS, frozenset()))
        == 28
    )
    inputs, labels = torch.zeros(2, 3), torch.zeros(2, 2)
    assert count_bytes(DistilledSet(inputs, labels, torch.zeros(2), torch.zeros(2))) == 56


def test_messages_without_tensors_count_nothing() -> None:
    assert count_bytes(Evaluation({"loss": 1.0}, 9)) == count_bytes(MissingReply("late")) == 0
