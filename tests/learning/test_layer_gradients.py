"""Gradients by layer equal those of whole examples."""

import pytest
import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.example_gradients import example_gradients
from overheard.learning.initialization import initial_weights
from overheard.learning.layer_gradients import layer_gradients, layers_with_products

RECIPE = Recipe(rate=0.1, epochs=1, batch=4, label_smoothing=0.1)


def dense() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(32, 5), nn.ReLU(inplace=True), nn.Linear(5, 3, bias=False)
    )


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1, stride=2),
        nn.GroupNorm(3, 3),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(12, 3),
    )


@pytest.mark.parametrize("build", [dense, convolutions])
def test_products_summed_over_positions_are_the_gradients_of_examples(build) -> None:
    weights = initial_weights(build, Seed(0))
    generator = Seed(1).generator()
    examples = Examples(
        torch.randn(6, 2, 4, 4, generator=generator), torch.tensor([0, 1, 2, 0, 1, 2])
    )
    whole = example_gradients(build, weights, examples, RECIPE)
    names = sorted(weights)
    columns = whole.split([weights[name].numel() for name in names], 1)
    by_name = {n: c.view(6, *weights[n].shape) for n, c in zip(names, columns, strict=True)}
    found = layer_gradients(build, weights, examples, RECIPE)
    assert list(found) == list(layers_with_products(build()).values())
    for layer, gradients in found.items():
        for number, matrix in enumerate(gradients.matrices()):
            expected = layer.matrix_of({n: one[number] for n, one in by_name.items()})
            torch.testing.assert_close(matrix, expected, atol=1e-6, rtol=1e-4)


def test_frozen_layers_and_grouped_convolutions_are_left_out() -> None:
    frozen = nn.Linear(2, 2).requires_grad_(requires_grad=False)
    model = nn.Sequential(frozen, nn.Conv2d(2, 2, 1, groups=2), nn.Linear(2, 2))
    assert list(layers_with_products(model)) == ["2"]
