"""Gradients of single examples: by hand, and as autograd computes them one by one."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.example_gradients import (
    example_gradients,
    flatten_weights,
    mean_example_gradient,
)
from overheard.learning.initialization import fresh_model, initial_weights
from overheard.learning.sent_tensors import load_sent_tensors, trainable_parameters

RECIPE = Recipe(rate=0.1, epochs=1, batch=4)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))


def in_place() -> nn.Module:
    """Activations that overwrite the outputs of linear layers, as those of `mlp` do."""
    return nn.Sequential(
        nn.Linear(3, 5), nn.ReLU(inplace=True), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)
    )


def with_dropout() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.5), nn.Linear(5, 2))


def bag() -> nn.Module:
    return nn.Sequential(nn.EmbeddingBag(7, 4), nn.Linear(4, 2))


def conv() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))


def normed() -> nn.Module:
    """A batch norm, of which examples take the running statistics, over a frozen layer."""
    first = nn.Linear(3, 5).requires_grad_(False)
    return nn.Sequential(first, nn.BatchNorm1d(5), nn.Linear(5, 2))


def frozen_bag() -> nn.Module:
    """A table with a buffer that is sent."""
    model = bag()
    model.register_buffer("scale", torch.ones(2))
    return model


def inputs_of(name: str) -> torch.Tensor:
    generator = Seed(1).generator()
    if name.startswith("bag"):
        return torch.randint(7, (6, 3), generator=generator)
    shape = (6, 1, 4, 4) if name == "conv" else (6, 3)
    return torch.randn(shape, generator=generator)


MODELS = {
    "mlp": mlp,
    "in place": in_place,
    "with_dropout": with_dropout,
    "bag": bag,
    "conv": conv,
    "normed": normed,
    "bag with a buffer": frozen_bag,
}


@pytest.mark.parametrize("name", MODELS)
def test_equals_autograd_example_by_example(name: str) -> None:
    build = MODELS[name]
    records = Examples(inputs_of(name), torch.tensor([0, 1, 1, 0, 1, 0]))
    weights = initial_weights(build, Seed(2))
    gradients = example_gradients(build, weights, records, RECIPE)
    model = fresh_model(build, Seed(0)).eval()
    load_sent_tensors(model, weights)
    for number, row in enumerate(gradients):
        model.zero_grad()
        one = slice(number, number + 1)
        functional.cross_entropy(model(records.inputs[one]), records.labels[one]).backward()
        by_name = {key: torch.zeros_like(weight) for key, weight in weights.items()}
        by_name |= {key: one.grad for key, one in trainable_parameters(model).items()}
        torch.testing.assert_close(row, flatten_weights(by_name), atol=1e-6, rtol=1e-4)
    mean = mean_example_gradient(build, weights, records, RECIPE)
    torch.testing.assert_close(mean, gradients.mean(0), atol=1e-6, rtol=1e-4)


def test_a_linear_model_has_the_gradient_of_the_formula() -> None:
    # All weights 0: both classes have probability 1 / 2, so the gradient of the bias is
    # (1/2, 1/2) minus the label's unit vector, and that of the weights is this times the input.
    def build() -> nn.Module:
        return nn.Linear(2, 2)

    weights = {"weight": torch.zeros(2, 2), "bias": torch.zeros(2)}
    records = Examples(torch.tensor([[3.0, 4.0]]), torch.tensor([1]))
    (row,) = example_gradients(build, weights, records, RECIPE)
    # bias first, in the order of names
    assert row.tolist() == [0.5, -0.5, 1.5, 2.0, -1.5, -2.0]


def test_uses_the_loss_of_the_recipe() -> None:
    records = Examples(inputs_of("mlp"), torch.tensor([0, 1, 1, 0, 1, 0]))
    weights = initial_weights(mlp, Seed(2))
    squared = Recipe(rate=0.1, epochs=1, batch=4, loss="squared_error")
    plain = example_gradients(mlp, weights, records, RECIPE)
    assert not example_gradients(mlp, weights, records, squared).allclose(plain)
