"""Stacked networks of convolutions on a CUDA device: products, and a kernel in Triton."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional
from triton.errors import TritonError

from overheard.core.recipe import LossName, Precision
from overheard.learning.engines.convolution_products import convolve
from overheard.learning.engines.dropout_noise import DropoutNoise
from overheard.learning.engines.instance_norm_kernels import can_run_on, normalise_and_pool
from overheard.learning.engines.stacked_networks import StackedNetworks
from overheard.learning.engines.triton_support import refuse_kernels
from overheard.learning.engines.vmapped_networks import VmappedNetworks
from overheard.learning.loss import per_example_loss

SIDE = 2
"""Pixels per side that a pool merges."""

ACTIVATIONS = (nn.ReLU, nn.LeakyReLU, nn.Tanh)
"""Layers that change each number on its own."""


@final
class StackedConvolutions(StackedNetworks):
    """Plain sequences of convolutions, instance norms, pools and linear layers.

    Maps are in channels-last order (clients, images, height, width, channels), convolutions are
    products of all clients at once, and an instance norm is one kernel with the ReLU and the
    pool after it. Clipped gradients are computed by `VmappedNetworks`, as all are from the
    moment when a kernel cannot be compiled.

    Args:
        model: a network for which `supports` is true.
        label_smoothing: of the targets.
        loss: name of the loss.
        precision: "bf16" = maps and factors of float32 networks are rounded to bfloat16.

    """

    def __init__(
        self,
        model: nn.Module,
        label_smoothing: float = 0.0,
        loss: LossName = "cross_entropy",
        precision: Precision = "float32",
    ) -> None:
        self._steps = _steps_of(model)
        self._smoothing, self._loss = label_smoothing, loss
        self._is_half = precision == "bf16"
        self._fallback = VmappedNetworks(model, label_smoothing, loss)
        self._has_failed = False

    @staticmethod
    def supports(model: nn.Module) -> bool:
        """Return whether this network is such a sequence, and all of it is trained."""
        layers = list(model.children())
        if (
            type(model) is not nn.Sequential
            or len(layers) < len(model)  # a layer stands at two places
            or not any(type(layer) is nn.Conv2d for layer in layers)
            or not all(one.requires_grad for one in model.parameters())
        ):
            return False
        kinds = [type(layer) for layer in layers]
        if kinds.count(nn.Flatten) != 1:
            return False
        end = kinds.index(nn.Flatten)
        return all(_is_for_maps(layer) for layer in layers[:end]) and all(
            _is_plain_flatten(layers[end])
            if layer is layers[end]
            else type(layer) in (nn.Linear, *ACTIVATIONS)
            for layer in layers[end:]
        )

    def logits(
        self,
        parameters: Sequence[Shaped[Tensor, "clients ..."]],
        inputs: Shaped[Tensor, "clients examples ..."],
    ) -> Float[Tensor, "clients examples classes"]:
        """Run the network of each client on its own inputs."""
        kind = parameters[0].dtype
        is_half = self._is_half and kind == torch.float32
        numbers = inputs.permute(0, 1, 3, 4, 2).to(torch.bfloat16 if is_half else kind)
        for step in self._steps:
            numbers = step.run(numbers, parameters)
        return numbers.to(kind)

    def write_gradients(
        self,
        gradients: Sequence[Float[Tensor, "clients ..."]],
        parameters: Sequence[Float[Tensor, "clients ..."]],
        inputs: Shaped[Tensor, "clients examples ..."],
        labels: Shaped[Tensor, "clients examples ..."],
        weights: Float[Tensor, "clients examples"],
        noise: DropoutNoise | None = None,
        clip: float | None = None,
    ) -> Float[Tensor, " clients"]:
        """Write the gradient of each client's loss in place, and return the losses."""
        given = gradients, parameters, inputs, labels, weights
        if clip is None and not self._has_failed:
            try:
                return self._write(*given)
            except TritonError as error:
                refuse_kernels(inputs.device, f"{type(error).__name__}: {str(error)[:200]}")
                self._has_failed = True
        return self._fallback.write_gradients(*given, noise, clip)

    def _write(
        self,
        gradients: Sequence[Tensor],
        parameters: Sequence[Tensor],
        inputs: Tensor,
        labels: Tensor,
        weights: Tensor,
    ) -> Tensor:
        leaves = [parameter.detach().requires_grad_() for parameter in parameters]
        with torch.enable_grad():
            logits = self.logits(leaves, inputs)
            each = per_example_loss(
                logits.flatten(0, 1), labels.flatten(0, 1), self._loss, self._smoothing
            ).view_as(weights)
            losses = (each * weights).sum(1)
            values = torch.autograd.grad(losses.sum(), leaves)
        for gradient, value in zip(gradients, values, strict=True):
            gradient.copy_(value)
        return losses.detach()


def _is_for_maps(layer: nn.Module) -> bool:
    """Return whether this layer can stand before the flattening."""
    match layer:
        case nn.Conv2d():
            return (
                type(layer) is nn.Conv2d
                and layer.stride == (1, 1)
                and layer.dilation == (1, 1)
                and layer.groups == 1
                and layer.padding_mode == "zeros"
                and not isinstance(layer.padding, str)
                # The gradient is convolved with the rest of the kernel as padding.
                and all(
                    int(padding) < side
                    for padding, side in zip(layer.padding, layer.kernel_size, strict=True)
                )
            )
        case nn.GroupNorm():
            return (
                type(layer) is nn.GroupNorm
                and layer.affine
                and layer.num_groups == layer.num_channels
            )
        case nn.MaxPool2d():
            return (
                type(layer) is nn.MaxPool2d
                and _merges_four(layer)
                and layer.dilation in (1, (1, 1))
                and not layer.return_indices
            )
        case nn.AvgPool2d():
            return (
                type(layer) is nn.AvgPool2d
                and _merges_four(layer)
                and layer.divisor_override is None
            )
        case _:
            return type(layer) in ACTIVATIONS


def _merges_four(layer: nn.MaxPool2d | nn.AvgPool2d) -> bool:
    pair = (SIDE, SIDE)
    return (
        layer.kernel_size in (SIDE, pair)
        and layer.stride in (SIDE, pair)
        and layer.padding in (0, (0, 0))
        and not layer.ceil_mode
    )


def _is_plain_flatten(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Flatten) and (layer.start_dim, layer.end_dim) == (1, -1)


def _steps_of(model: nn.Module) -> "list[_Step]":
    """Return the layers in order; a ReLU and a pool are steps of the instance norm before."""
    steps: list[_Step] = []
    layers, index = list(model.children()), 0
    while layers:
        layer = layers.pop(0)
        match layer:
            case nn.Conv2d():
                padding = int(layer.padding[0]), int(layer.padding[1])
                steps.append(_Convolution(index, layer.bias is not None, padding))
            case nn.GroupNorm():
                has_relu = bool(layers) and isinstance(layers[0], nn.ReLU)
                del layers[: int(has_relu)]
                has_pool = bool(layers) and isinstance(layers[0], nn.AvgPool2d)
                del layers[: int(has_pool)]
                steps.append(_Norm(index, layer.eps, has_relu, has_pool))
            case nn.Linear():
                steps.append(_Linear(index, layer.bias is not None))
            case nn.MaxPool2d():
                steps.append(_Other(_pooling(functional.max_pool2d)))
            case nn.AvgPool2d():
                steps.append(_Other(_pooling(functional.avg_pool2d)))
            case nn.Flatten():
                steps.append(_Other(_flatten))
            case nn.LeakyReLU():
                slope = layer.negative_slope
                steps.append(_Other(partial(functional.leaky_relu, negative_slope=slope)))
            case nn.Tanh():
                steps.append(_Other(torch.tanh))
            case _:
                steps.append(_Other(functional.relu))
        index += len(list(layer.parameters()))
    return steps


@dataclass(frozen=True, slots=True)
class _Convolution:
    """A convolution.

    Args:
        index: index of its kernels among the parameters.
        has_bias: whether a bias follows them.
        padding: zeros on each side, of the height and of the width.

    """

    index: int
    has_bias: bool
    padding: tuple[int, int]

    def run(self, maps: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        bias = parameters[self.index + 1] if self.has_bias else None
        return convolve(maps, parameters[self.index], bias, self.padding)


@dataclass(frozen=True, slots=True)
class _Norm:
    """An instance norm, and whether ReLU and an average pool follow."""

    index: int
    epsilon: float
    has_relu: bool
    has_pool: bool

    def run(self, maps: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        weight, bias = parameters[self.index : self.index + 2]
        run = normalise_and_pool if can_run_on(maps) else normalise_by_torch
        return run(maps, weight, bias, self.epsilon, self.has_relu, self.has_pool)


@dataclass(frozen=True, slots=True)
class _Linear:
    """A linear layer."""

    index: int
    has_bias: bool

    def run(self, numbers: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        weight = parameters[self.index].to(numbers.dtype).transpose(1, 2)
        if not self.has_bias:
            return torch.bmm(numbers, weight)
        bias = parameters[self.index + 1].to(numbers.dtype).unsqueeze(1)
        return torch.baddbmm(bias, numbers, weight)


@dataclass(frozen=True, slots=True)
class _Other:
    """A step without parameters."""

    function: Callable[[Tensor], Tensor]

    def run(self, numbers: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        return self.function(numbers)


_Step = _Convolution | _Norm | _Linear | _Other


def _pooling(pool: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a pool of maps in channels-last order."""

    def run(maps: Tensor) -> Tensor:
        pooled = pool(maps.flatten(0, 1).permute(0, 3, 1, 2), SIDE).permute(0, 2, 3, 1)
        return pooled.reshape(*maps.shape[:2], *pooled.shape[1:])

    return run


def _flatten(maps: Tensor) -> Tensor:
    return maps.permute(0, 1, 4, 2, 3).flatten(2)


def normalise_by_torch(
    maps: Float[Tensor, "clients images height width channels"],
    weight: Float[Tensor, "clients channels"],
    bias: Float[Tensor, "clients channels"],
    epsilon: float,
    has_relu: bool,
    has_pool: bool,
) -> Float[Tensor, "clients images out_height out_width channels"]:
    """Return what `normalise_and_pool` returns, by torch's own operations."""
    kind = maps.dtype
    numbers = maps.float() if kind == torch.bfloat16 else maps
    variance, mean = torch.var_mean(numbers, (2, 3), correction=0, keepdim=True)
    scale = (variance + epsilon).rsqrt() * weight[:, None, None, None]
    numbers = (numbers - mean) * scale + bias[:, None, None, None]
    numbers = functional.relu(numbers) if has_relu else numbers
    numbers = _pooling(functional.avg_pool2d)(numbers) if has_pool else numbers
    return numbers.to(kind)
