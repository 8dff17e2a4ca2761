"""Sensitivities counted parameter by parameter."""

import pytest
import torch
from torch import nn

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.questions.label_shares.attacks.ppa import (
    DifferentialSensitivity,
)
from overheard.simulation.probe import ProbeContext

# One example per class, each with its own feature.
HELD_OUT = Examples(torch.eye(2), torch.tensor([0, 1]))
ZEROS = {"0.weight": torch.zeros(2, 2), "0.bias": torch.zeros(2)}
ONE_STEP = DifferentialSensitivity(epochs=1)


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2))


def scene(held_out: Examples = HELD_OUT) -> ProbeContext:
    return ProbeContext(0, ZEROS, linear, 2, held_out, held_out, None, Seed(0), "cpu")


# Sure of class 0 wherever its feature is 1: logits of 100 and -100, so that softmax less target
# is exactly 0 in float32 and nothing is left to learn from class 0.
LEARNED_0 = {"0.weight": torch.tensor([[100.0, 0.0], [-100.0, 0.0]]), "0.bias": torch.zeros(2)}


def test_a_learned_class_has_lower_sensitivity():
    # Adam's first step moves each parameter that has a slope by the rate: over the rate, 1.
    # From zeros an example moves its feature's weights (2) and the biases (2): 4 a class.
    # LEARNED_0 does not move for class 0, and as much as before for class 1: (4 - 0, 4 - 4).
    read = ONE_STEP.read(scene(), [LEARNED_0, ZEROS])
    torch.testing.assert_close(read, torch.tensor([[4.0, 0.0], [0.0, 0.0]]), atol=1e-3, rtol=0)


def test_training_on_a_class_increases_its_difference():
    # A step on class 1 alone, along the negative slope: toward row 1, away from row 0.
    step = {
        "0.weight": torch.tensor([[0.0, -2.0], [0.0, 2.0]]),
        "0.bias": torch.tensor([-2.0, 2.0]),
    }
    (read,) = DifferentialSensitivity(epochs=20, rate=0.1).read(scene(), [step])
    assert float(read[1]) > 0 > float(read[0])


def test_reads_the_named_layer():
    def deep() -> nn.Module:
        return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))

    start = {
        "0.weight": torch.ones(3, 2),
        "0.bias": torch.zeros(3),
        "2.weight": torch.tensor([[1.0, 1, 1], [-1, -1, -1]]),
        "2.bias": torch.zeros(2),
    }
    there = ProbeContext(0, start, deep, 2, HELD_OUT, HELD_OUT, None, Seed(0), "cpu")
    # With its output weights gone a model has no slope below them: its first layer is still.
    silent = {name: -w if name == "2.weight" else 0 * w for name, w in start.items()}
    first, last = (
        DifferentialSensitivity(layer=layer, epochs=1).read(there, [silent])
        for layer in ("0", "last")
    )
    # Of class 1, 3 weights of its feature and 3 biases moved before: 6.
    assert float(first[0, 1]) == pytest.approx(6, abs=1e-2)
    assert float(last[0, 1]) < 6


def test_refuses_an_unknown_layer():
    with pytest.raises(NeedsError, match="'last' or one of 0"):
        DifferentialSensitivity(layer="conv").read(scene(), [ZEROS])


def test_uses_at_most_the_allowed_examples_per_class():
    # The second example of class 0 has a feature of its own: with it 2 more weights move.
    inputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    more = Examples(inputs, torch.tensor([0, 0, 1]))
    one, both = (
        DifferentialSensitivity(samples=samples, epochs=1, batch=2).read(
            scene(more), [LEARNED_0]
        )
        for samples in (1, 2)
    )
    # One: 4 - 0. Both: 6 before, and the second example alone still moves 2 weights and 2
    # biases after, which leaves 2.
    assert float(one[0, 0]) == pytest.approx(4, abs=1e-2)
    assert float(both[0, 0]) == pytest.approx(2, abs=1e-2)
