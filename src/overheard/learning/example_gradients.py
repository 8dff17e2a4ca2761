"""The gradient of the loss of each example by itself."""

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.learning.initialization import model_at
from overheard.learning.layer_gradients import layer_gradients
from overheard.learning.loss import per_example_loss
from overheard.learning.precision import computing
from overheard.learning.sent_tensors import trainable_parameters

EXAMPLES_PER_PASS = 256
"""Examples in one pass of the mean gradient, which bounds the memory of activations."""


def flatten_weights(weights: Weights) -> Float[Tensor, " params"]:
    """Return all parameters in one row, in the order of their names."""
    return torch.cat([weights[name].flatten() for name in sorted(weights)])


def example_gradients(
    build_model: BuildModel, weights: Weights, examples: Examples, recipe: Recipe
) -> Float[Tensor, "examples params"]:
    """Return the gradient of each example's loss at these weights, without weight decay.

    The columns are in the order of `flatten_weights`. Dropout is off. A batch norm takes its
    running statistics, not those of a batch, in which examples mix; so its gradients are
    approximate. At the running statistics themselves gradients are 0. All gradients are in
    memory at once, so a caller with many examples passes a part of them at a time.

    Args:
        build_model: builds the architecture.
        weights: where the gradients are taken.
        examples: on the device of the weights.
        recipe: names the loss.

    """
    names = sorted(weights)
    sizes = [weights[name].numel() for name in names]
    whole = weights[names[0]].new_empty(len(examples), sum(sizes))
    columns = dict(zip(names, torch.split(whole, sizes, 1), strict=True))
    for layer, gradients in layer_gradients(build_model, weights, examples, recipe).items():
        for name, part in layer.parts_of(gradients.matrices()).items():
            columns.pop(name).view(part.shape).copy_(part)
    for fixed in columns.values():
        fixed.zero_()
    return whole


def mean_example_gradient(
    build_model: BuildModel, weights: Weights, examples: Examples, recipe: Recipe
) -> Float[Tensor, " params"]:
    """Return the mean of `example_gradients` over all examples, by one pass over them."""
    model = model_at(build_model, weights, examples.inputs.device)
    parameters = trainable_parameters(model)
    total = torch.zeros_like(flatten_weights(weights))
    for rows in torch.split(torch.arange(len(examples)), EXAMPLES_PER_PASS):
        part = examples.take(rows)
        with computing("float32"):
            losses = per_example_loss(
                model(part.inputs), part.loss_labels, recipe.loss, recipe.label_smoothing
            )
            gradients = torch.autograd.grad(losses.sum(), list(parameters.values()))
        by_name = dict(zip(parameters, gradients, strict=True))
        total += flatten_weights(
            {name: by_name.get(name, torch.zeros_like(one)) for name, one in weights.items()}
        )
    return total / len(examples)
