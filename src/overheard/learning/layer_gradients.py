"""The gradient of the loss of each example at each layer, as slopes and inputs."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.initialization import fresh_model
from overheard.learning.loss import per_example_loss
from overheard.learning.sent_tensors import load_sent_tensors, trainable_parameters


@final
@dataclass(frozen=True, slots=True)
class LayerNames:
    """Names of the parameters of a linear layer or a convolution, as they are sent.

    Args:
        weight: of the weight.
        bias: of the bias; None if none is sent.

    """

    weight: str
    bias: str | None

    def matrix_of(self, weights: Weights) -> Float[Tensor, "outputs inputs"]:
        """Return the layer's part of the weights; the bias is the last column."""
        matrix = weights[self.weight].flatten(1)
        if self.bias is None:
            return matrix
        return torch.cat((matrix, weights[self.bias].unsqueeze(1)), 1)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LayerGradients:
    """The gradients of examples at one layer: of each, a sum of products over positions.

    A linear layer has one position, a convolution one for each pixel of its output. With a
    bias, the last input is 1.

    Args:
        inputs: of the layer, at each position.
        slopes: gradient of the example's loss at the outputs of the layer.

    """

    inputs: Float[Tensor, "examples positions inputs"]
    slopes: Float[Tensor, "examples positions outputs"]

    def matrices(self) -> Float[Tensor, "examples outputs inputs"]:
        """Return the gradient of each example, as `LayerNames.matrix_of` orders weights."""
        return self.slopes.transpose(1, 2) @ self.inputs


def layers_with_products(model: nn.Module) -> dict[str, LayerNames]:
    """Return the linear layers and convolutions that train, by the name of the module.

    Left out are convolutions in groups, with padding other than zeros or with padding by name.
    """
    sent = {id(one): name for name, one in trainable_parameters(model).items()}
    found = {}
    for name, module in model.named_modules():
        if not isinstance(module, (nn.Linear, nn.Conv2d)) or id(module.weight) not in sent:
            continue
        if isinstance(module, nn.Conv2d) and (
            module.groups > 1
            or module.padding_mode != "zeros"
            or isinstance(module.padding, str)
        ):
            continue
        bias = None if module.bias is None else sent.get(id(module.bias))
        found[name] = LayerNames(sent[id(module.weight)], bias)
    return found


def layer_gradients(
    build_model: BuildModel, weights: Weights, examples: Examples, recipe: Recipe
) -> dict[LayerNames, LayerGradients]:
    """Return the gradients of each example's loss by layer, at these weights.

    Dropout is off, and a batch norm takes its running statistics, as in `example_gradients`.
    All gradients are in memory at once, so a caller with many examples passes a part of them.

    Args:
        build_model: builds the architecture.
        weights: where the gradients are taken.
        examples: on the device of the weights.
        recipe: names the loss.

    """
    model = fresh_model(build_model, Seed(0)).to(examples.inputs.device).eval()
    model.to(dtype=next(iter(weights.values())).dtype)
    load_sent_tensors(model, weights)
    inputs, outputs = dict[str, list[Tensor]](), dict[str, list[Tensor]]()
    layers = layers_with_products(model)
    for name in layers:
        _record(
            model.get_submodule(name), inputs.setdefault(name, []), outputs.setdefault(name, [])
        )
    losses = per_example_loss(
        model(examples.inputs), examples.loss_labels, recipe.loss, recipe.label_smoothing
    )
    flat = [one for name in layers for one in outputs[name]]
    slopes = iter(torch.autograd.grad(losses.sum(), flat))
    return {
        names: _joined(
            model.get_submodule(name),
            names,
            inputs[name],
            [next(slopes) for _ in outputs[name]],
        )
        for name, names in layers.items()
        if outputs[name]
    }


def _record(module: nn.Module, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    """Let a module add its inputs and outputs to these lists whenever it is called."""

    def hook(_: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        inputs.append(given[0].detach())
        outputs.append(output)
        return output.clone()  # the next layer may work in place, but `outputs` must stay

    module.register_forward_hook(hook)


def _joined(
    module: nn.Module, names: LayerNames, inputs: list[Tensor], slopes: list[Tensor]
) -> LayerGradients:
    """Return the gradients of a layer, whose calls are further positions."""
    calls = [
        _by_position(module, one, slope) for one, slope in zip(inputs, slopes, strict=True)
    ]
    before = torch.cat([one for one, _ in calls], 1)
    if names.bias is not None:
        before = functional.pad(before, (0, 1), value=1.0)
    return LayerGradients(before, torch.cat([slope for _, slope in calls], 1))


def _by_position(module: nn.Module, inputs: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the inputs and slopes of one call: (examples, positions, inputs or outputs)."""
    if not isinstance(module, nn.Conv2d):
        examples = len(inputs)
        return (
            inputs.reshape(examples, -1, inputs.shape[-1]),
            slopes.reshape(examples, -1, slopes.shape[-1]),
        )
    assert not isinstance(module.padding, str), "such layers are left out"
    patches = functional.unfold(
        inputs, module.kernel_size, module.dilation, module.padding, module.stride
    )
    return patches.transpose(1, 2), slopes.flatten(2).transpose(1, 2)
