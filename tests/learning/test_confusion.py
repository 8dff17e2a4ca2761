"""Mean outputs by class."""

from dataclasses import replace

import pytest
import torch

from overheard.core.knowledge import Knowledge
from overheard.core.messages import apply_update
from overheard.core.seeds import Seed
from overheard.learning import confusion
from overheard.learning.confusion import (
    confusion_of_model,
    confusion_of_updates,
    mean_output_by_class,
)
from overheard.learning.initialization import initial_weights
from tests.learning.cases import MLP, TABLE, pool_of


def test_rows_are_the_mean_outputs_of_each_class():
    # Two examples of class 0 with outputs (1/2, 1/2) and (3/4, 1/4): mean (5/8, 3/8); one of
    # class 1 with (1/5, 4/5).
    logits = torch.tensor([[1.0, 1.0], [3.0, 1.0], [1.0, 4.0]]).log()
    rows = mean_output_by_class(logits, torch.tensor([0, 0, 1]))
    expected = torch.tensor([[0.625, 0.375], [0.2, 0.8]], dtype=torch.float64)
    torch.testing.assert_close(rows, expected, atol=1e-6, rtol=0)


def test_refuses_a_class_without_examples():
    with pytest.raises(ValueError, match="every class"):
        mean_output_by_class(torch.zeros(2, 3), torch.tensor([0, 1]))


class Lazy(dict):
    """Weights to which weak references are possible."""


def test_outputs_after_updates_are_computed_once_for_all_attacks(monkeypatch):
    examples = pool_of(TABLE, torch.float32)
    knowledge = Knowledge(TABLE.classes, MLP, examples)
    start = Lazy(initial_weights(MLP, Seed(0)))
    deltas = [Lazy(initial_weights(MLP, Seed(n))) for n in range(1, 4)]
    first = list(confusion_of_updates(start, deltas, knowledge))
    for delta, matrix in zip(deltas, first, strict=True):
        alone = confusion_of_model(apply_update(start, delta), knowledge)
        # Some processors round the products of several models otherwise than those of one.
        torch.testing.assert_close(matrix, alone, rtol=1e-5, atol=1e-6)
    # Another attack may ask about fewer updates, in another order.
    with monkeypatch.context() as patched:
        patched.setattr(confusion, "logits_of_updates", lambda *_: iter(()))
        again = list(confusion_of_updates(start, deltas[:0:-1], knowledge))
    assert all(map(torch.equal, again, first[:0:-1]))
    # What a caller does to a matrix changes no other's.
    again[0].zero_()
    (third,) = confusion_of_updates(start, deltas[2:], knowledge)
    assert torch.equal(third, first[2])
    # Other examples give other outputs.
    fewer = replace(knowledge, auxiliary=examples.take(torch.arange(1, len(examples))))
    (other,) = confusion_of_updates(start, deltas[2:], fewer)
    assert not torch.equal(other, third)
