"""The gradient of the loss of each example by itself."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.architecture import has_embedding, is_plain_mlp, is_recurrent
from overheard.learning.initialization import fresh_model
from overheard.learning.loss import per_example_loss
from overheard.learning.sent_tensors import load_sent_tensors, trainable_parameters

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
    model = _model_at(build_model, weights, examples)
    if is_recurrent(model) or has_embedding(model):
        return _one_by_one(model, weights, examples, recipe)
    gradients = (
        _of_plain_mlp(model, examples, recipe)
        if is_plain_mlp(model)
        else _by_vmap(model, examples, recipe)
    )
    by_name = {name: part.flatten(1) for name, part in gradients.items()}
    fixed = {
        name: one.new_zeros(len(examples), one.numel())
        for name, one in weights.items()
        if name not in by_name
    }
    return torch.cat([(by_name | fixed)[name] for name in sorted(weights)], 1)


def mean_example_gradient(
    build_model: BuildModel, weights: Weights, examples: Examples, recipe: Recipe
) -> Float[Tensor, " params"]:
    """Return the mean of `example_gradients` over all examples, by one pass over them."""
    model = _model_at(build_model, weights, examples)
    parameters = trainable_parameters(model)
    total = torch.zeros_like(flatten_weights(weights))
    for rows in torch.split(torch.arange(len(examples)), EXAMPLES_PER_PASS):
        part = examples.take(rows)
        losses = per_example_loss(
            model(part.inputs), part.loss_labels, recipe.loss, recipe.label_smoothing
        )
        total += _gradient_row(losses.sum(), parameters, weights)
    return total / len(examples)


def _model_at(build_model: BuildModel, weights: Weights, examples: Examples) -> nn.Module:
    """Return the model with these weights, without dropout, on the device of the examples."""
    model = fresh_model(build_model, Seed(0)).to(examples.inputs.device).eval()
    model.to(dtype=next(iter(weights.values())).dtype)
    load_sent_tensors(model, weights)
    return model


def _gradient_row(
    loss: Tensor, parameters: Mapping[str, Tensor], weights: Weights
) -> Float[Tensor, " params"]:
    """Return the gradient at the parameters, and 0 at other weights, by name."""
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    by_name = dict(zip(parameters, gradients, strict=True))
    return flatten_weights(
        {
            name: by_name[name] if name in by_name else torch.zeros_like(one)
            for name, one in weights.items()
        }
    )


def _of_plain_mlp(
    model: nn.Module, examples: Examples, recipe: Recipe
) -> dict[str, Float[Tensor, "examples ..."]]:
    """Return the gradients by name, as outer products.

    The gradient of a matrix is the gradient at the outputs of its layer times the inputs.
    """
    numbers, inputs, outputs = examples.inputs.flatten(1), dict[str, Tensor](), []
    for name, layer in model.named_children():
        if isinstance(layer, nn.Linear):
            inputs[name] = numbers
            numbers = layer(numbers)
            outputs.append(numbers)
        elif not isinstance(layer, nn.Flatten):
            numbers = layer(numbers.clone())  # it may work in place, but `outputs` must stay
    losses = per_example_loss(
        numbers, examples.loss_labels, recipe.loss, recipe.label_smoothing
    )
    gradients = {}
    slopes = torch.autograd.grad(losses.sum(), outputs)
    for (name, before), slope in zip(inputs.items(), slopes, strict=True):
        gradients[f"{name}.weight"] = slope.unsqueeze(2) * before.detach().unsqueeze(1)
        gradients[f"{name}.bias"] = slope
    return {name: gradients[name] for name, _ in model.named_parameters()}


def _by_vmap(
    model: nn.Module, examples: Examples, recipe: Recipe
) -> dict[str, Float[Tensor, "examples ..."]]:
    """Return the gradients by name, all examples at once."""
    # The first call of `vmap` imports the compiler of torch, which takes a second or two.
    from torch.func import functional_call, grad, vmap

    def loss(parameters: Mapping[str, Tensor], example: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(model, dict(parameters), (example.unsqueeze(0),))
        losses = per_example_loss(
            logits, label.unsqueeze(0), recipe.loss, recipe.label_smoothing
        )
        return losses.squeeze(0)

    start = {name: one.detach() for name, one in trainable_parameters(model).items()}
    gradients: dict[str, Tensor] = vmap(grad(loss), (None, 0, 0))(
        start, examples.inputs, examples.loss_labels
    )
    return gradients


def _one_by_one(
    model: nn.Module, weights: Weights, examples: Examples, recipe: Recipe
) -> Float[Tensor, "examples params"]:
    """Differentiate examples in turn, as `vmap` runs neither recurrent nor embedding layers."""
    parameters = trainable_parameters(model)
    rows = []
    for number in range(len(examples)):
        one = examples.take(torch.tensor([number]))
        loss = per_example_loss(
            model(one.inputs), one.loss_labels, recipe.loss, recipe.label_smoothing
        )
        rows.append(_gradient_row(loss.sum(), parameters, weights))
    return torch.stack(rows)
