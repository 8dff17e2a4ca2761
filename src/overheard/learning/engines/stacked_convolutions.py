"""Stacked networks of convolutions on a CUDA device, by kernels of Triton."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from overheard.core.recipe import LossName
from overheard.learning.engines import convolution_kernels, convolution_products
from overheard.learning.engines.convolution_kernels import Products
from overheard.learning.engines.dropout_noise import DropoutNoise
from overheard.learning.engines.first_block_kernels import MOST_INPUTS, FirstBlock
from overheard.learning.engines.instance_norm_kernels import MOST_PIXELS, normalise_and_pool
from overheard.learning.engines.stacked_networks import StackedNetworks
from overheard.learning.loss import per_example_loss

Precision = Literal["float32", "tf32", "bf16"]

FLOAT32_PRODUCTS: Products = "tf32x3"
"""How kernels multiply float32 numbers with the precision of float32."""

MERGE_FIRST = False
"""Whether the first convolution is computed together with the instance norm after it."""

SIDE = 2
"""Pixels per side that a pool merges."""

ACTIVATIONS = (nn.ReLU, nn.LeakyReLU, nn.Tanh)
"""Layers that change each number on its own."""


@final
class StackedConvolutions(StackedNetworks):
    """Plain sequences of convolutions, instance norms, pools and linear layers.

    Maps are in channels-last order (clients, images, height, width, channels). Float64 weights
    are multiplied by torch's own products.

    Args:
        model: a network for which `supports` is true.
        label_smoothing: of the targets.
        loss: name of the loss.
        precision: of the products of float32 weights.
        clipping: the same networks; they compute clipped gradients.

    """

    def __init__(
        self,
        model: nn.Module,
        label_smoothing: float = 0.0,
        loss: LossName = "cross_entropy",
        *,
        precision: Precision = "float32",
        clipping: StackedNetworks | None = None,
    ) -> None:
        self._steps = _steps_of(model)
        self._smoothing, self._loss = label_smoothing, loss
        self._precision: Precision = precision
        self._clipping = clipping

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
        is_half = self._precision == "bf16" and kind == torch.float32
        numbers = inputs.permute(0, 1, 3, 4, 2).to(torch.bfloat16 if is_half else kind)
        products = FLOAT32_PRODUCTS if self._precision == "float32" else "tf32"
        for step in self._steps:
            numbers = step.run(numbers, parameters, products)
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
        if clip is not None:
            if self._clipping is None:
                raise ValueError("clip needs the argument clipping of the constructor")
            return self._clipping.write_gradients(
                gradients, parameters, inputs, labels, weights, noise, clip
            )
        leaves = [parameter.detach().requires_grad_() for parameter in parameters]
        with torch.enable_grad():
            logits = self.logits(leaves, inputs)
            each = per_example_loss(
                logits.flatten(0, 1), labels.flatten(0, 1), self._loss, self._smoothing
            ).view_as(weights)
            losses = (each * weights).sum(1)
            # A bias that an instance norm takes away has the gradient 0.
            values = torch.autograd.grad(losses.sum(), leaves, materialize_grads=True)
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
                is_normed = bool(layers) and isinstance(layers[0], nn.GroupNorm)
                steps.append(_Convolution(index, layer.bias is not None, padding, is_normed))
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
    match steps:
        case [_Convolution() as first, _Norm() as norm, *rest] if MERGE_FIRST:
            return [_FirstBlock(first, norm), *rest]
    return steps


@dataclass(frozen=True, slots=True)
class _Convolution:
    """A convolution.

    Args:
        index: index of its kernels among the parameters.
        has_bias: whether a bias follows them.
        padding: zeros on each side, of the height and of the width.
        is_normed: whether an instance norm follows, which removes the bias again.

    """

    index: int
    has_bias: bool
    padding: tuple[int, int]
    is_normed: bool

    def run(self, maps: Tensor, parameters: Sequence[Tensor], products: Products) -> Tensor:
        kernels = parameters[self.index]
        bias = parameters[self.index + 1] if self.has_bias else None
        outputs: Tensor = _Convolve.apply(  # type: ignore[no-untyped-call]
            maps, kernels, bias, self.padding, products, self.is_normed
        )
        return outputs


@dataclass(frozen=True, slots=True)
class _Norm:
    """An instance norm, and whether ReLU and an average pool follow."""

    index: int
    epsilon: float
    has_relu: bool
    has_pool: bool

    def run(self, maps: Tensor, parameters: Sequence[Tensor], products: Products) -> Tensor:
        weight, bias = parameters[self.index : self.index + 2]
        height, width = maps.shape[2:4]
        run = normalise_by_torch
        if convolution_kernels.can_run_on(maps) and height * width <= MOST_PIXELS:
            run = normalise_and_pool
        return run(maps, weight, bias, self.epsilon, self.has_relu, self.has_pool)


@dataclass(frozen=True, slots=True)
class _FirstBlock:
    """The first convolution with the instance norm after it."""

    convolution: _Convolution
    norm: _Norm

    def run(self, maps: Tensor, parameters: Sequence[Tensor], products: Products) -> Tensor:
        norm, padding = self.norm, self.convolution.padding
        kernels = parameters[self.convolution.index]
        height = maps.shape[2] + 2 * padding[0] - kernels.shape[3] + 1
        width = maps.shape[3] + 2 * padding[1] - kernels.shape[4] + 1
        if (
            not convolution_kernels.can_run_on(maps)
            or height * width > MOST_PIXELS
            or kernels[0, 0].numel() > MOST_INPUTS
        ):
            maps = self.convolution.run(maps, parameters, products)
            return norm.run(maps, parameters, products)
        # The norm takes the bias of the convolution away.
        weight, bias = parameters[norm.index : norm.index + 2]
        block = FirstBlock(padding, norm.epsilon, norm.has_relu, norm.has_pool)
        return block.run(maps, kernels, weight, bias)


@dataclass(frozen=True, slots=True)
class _Linear:
    """A linear layer."""

    index: int
    has_bias: bool

    def run(self, numbers: Tensor, parameters: Sequence[Tensor], products: Products) -> Tensor:
        weight = parameters[self.index].to(numbers.dtype).transpose(1, 2)
        if not self.has_bias:
            return torch.bmm(numbers, weight)
        bias = parameters[self.index + 1].to(numbers.dtype).unsqueeze(1)
        return torch.baddbmm(bias, numbers, weight)


@dataclass(frozen=True, slots=True)
class _Other:
    """A step without parameters."""

    function: Callable[[Tensor], Tensor]

    def run(self, numbers: Tensor, parameters: Sequence[Tensor], products: Products) -> Tensor:
        return self.function(numbers)


_Step = _Convolution | _Norm | _FirstBlock | _Linear | _Other


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


# Any: torch does not name the type of the context that autograd passes.
@final
class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        maps: Tensor,
        kernels: Tensor,
        bias: Tensor | None,
        padding: tuple[int, int],
        products: Products,
        is_normed: bool,
    ) -> Tensor:
        maps = maps.contiguous()
        own = kernels.permute(0, 1, 3, 4, 2).to(
            maps.dtype, memory_format=torch.contiguous_format
        )
        ctx.save_for_backward(maps, kernels)
        ctx.padding, ctx.products, ctx.is_normed = padding, products, is_normed
        if convolution_kernels.can_run_on(maps):
            return convolution_kernels.convolve(maps, own, bias, padding, products)
        own_bias = None if bias is None else bias.to(maps.dtype)
        return convolution_products.convolve(maps, own, own_bias, padding)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:
        maps, kernels = ctx.saved_tensors
        gradients, padding = above[0].contiguous(), ctx.padding
        size = kernels.shape[3], kernels.shape[4]
        rest = size[0] - 1 - padding[0], size[1] - 1 - padding[1]
        needs_maps = ctx.needs_input_grad[0]
        turned = (
            kernels.flip(3, 4).permute(0, 2, 3, 4, 1).to(maps.dtype) if needs_maps else None
        )
        changes = None
        if convolution_kernels.can_run_on(maps):
            own = convolution_kernels.kernel_gradients(
                maps, gradients, size, padding, ctx.products
            )
            if turned is not None:
                changes = convolution_kernels.convolve(
                    gradients, turned, None, rest, ctx.products
                )
        else:
            own = convolution_products.kernel_gradients(maps, gradients, size, padding)
            if turned is not None:
                changes = convolution_products.convolve(gradients, turned, None, rest)
        own = own.permute(0, 1, 4, 2, 3).to(kernels.dtype)
        bias = None
        if ctx.needs_input_grad[2]:
            # The mean that an instance norm removes takes the bias along: its gradient is 0.
            bias = kernels.new_zeros(kernels.shape[:2])
            if not ctx.is_normed:
                torch.sum(gradients.flatten(1, 3), 1, dtype=bias.dtype, out=bias)
        return changes, own, bias, None, None, None
