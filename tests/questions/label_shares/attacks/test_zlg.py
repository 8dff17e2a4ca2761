"""Label counts from row sums, worked out by hand."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.questions.label_shares.attacks.zlg import Zlg, noise_like
from overheard.testing.planted_labels import SKEWED
from tests.runs.one_step import (
    KNOWLEDGE,
    biased_model,
    infer_shares,
    make_view,
    train_step,
)


def narrow() -> nn.Module:
    """Return a model with one input, one hidden unit and two classes."""
    return nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 2, bias=False))


D = math.log(3) / 6
NARROW_START = {"0.weight": torch.ones(1, 1), "2.weight": torch.zeros(2, 1)}
NARROW_DELTA = {"0.weight": torch.full((1, 1), 2.0), "2.weight": torch.tensor([[D], [-D]])}
NARROW = Knowledge(
    2,
    narrow,
    Examples(torch.ones(2, 1), torch.tensor([0, 1])),
    Recipe(rate=0.5, epochs=1, batch=2),
)


class TestAlongTheWay:
    """The hidden unit goes from 1 to 3 on inputs of 1, so O goes from 1 to 3.

    The last weights go from 0 to (D, -D) with 6 D = ln 3, so p goes from (1/2, 1/2) to
    softmax(3 D, -3 D) = (3/4, 1/4). Four examples in batches of 2: s = 2, at a rate of 1/2.
    The gradients' mean DW / s is -(D, -D) / (1/2 * 2) = (-D, D).
    """

    def read(self, attack: Zlg, examples: int | None = 4) -> list[float]:
        return infer_shares(attack, make_view(NARROW_DELTA, examples, NARROW_START), NARROW)

    def test_outputs_are_interpolated_over_the_steps(self):
        # Step 1: p = 1/2, O = 1: 1/2 + D. Step 2, half way: p = 5/8, O = 2: 5/8 + D / 2.
        first = (0.5 + D + 0.625 + D / 2) / 2
        assert self.read(Zlg()) == pytest.approx([first, 1 - first])

    def test_a_huge_reported_size_is_like_that_of_many_steps(self):
        # The gradients' mean vanishes, and p is halfway between 1/2 and 3/4.
        assert self.read(Zlg(), 2**52) == pytest.approx([0.625, 0.375], abs=1e-5)

    def test_without_interpolation_outputs_are_those_of_the_broadcast(self):
        first = 0.5 + D
        assert self.read(Zlg(interpolate=False)) == pytest.approx([first, 1 - first])

    def test_a_hidden_size_is_assumed(self):
        assert self.read(Zlg(assumed_examples=4), None) == self.read(Zlg())
        # 8 examples would take 4 steps, each half as long: from the broadcast, 1/2 + D / 2.
        first = 0.5 + D / 2
        attack = Zlg(interpolate=False, assumed_examples=8)
        assert self.read(attack, None) == pytest.approx([first, 1 - first])


def test_zero_features_give_the_mean_output():
    # Inputs of 0: O = 0, so division by O is impossible.
    dark = replace(KNOWLEDGE, auxiliary=Examples(torch.zeros(3, 3), torch.arange(3)))
    start = biased_model(0.5, 0.3, 0.2)
    shares = infer_shares(Zlg(), make_view(train_step((5, 3, 0), start), 8, start), dark)
    assert shares == pytest.approx([0.5, 0.3, 0.2])


def test_noise_inputs_still_find_the_main_classes(leaky):
    targets = [client(number) for number in range(len(SKEWED))]
    view = leaky.transcript.seen_by(SERVER)
    claims = Zlg(inputs="noise").infer(view, targets, leaky.knowledge, Seed(0))
    assert [int(claims[who].shares.argmax()) for who in targets] == [0, 1, 2, 3]


def test_noise_for_texts_shuffles_their_words():
    tokens = torch.arange(40).view(8, 5)
    noise = noise_like(tokens, Seed(1))
    assert noise.shape == tokens.shape
    assert not torch.equal(noise, tokens)
    assert torch.equal(noise.flatten().sort().values, tokens.flatten())
