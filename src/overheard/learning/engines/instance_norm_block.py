"""Instance norm, and the layers around it, computed image by image in the cache."""

from dataclasses import dataclass
from typing import Any, TypeGuard, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

BLOCK_BYTES = 2**19
"""Images that are processed at once: a few such buffers fit into the cache of a core (2 MB).

With 2 MB instead, each pass over 128 channels of 28 x 28 pixels takes 2 to 3 times as long."""

SIDE = 2
"""Pixels per side that the average pool merges."""


def use_instance_norm_blocks(model: nn.Module) -> None:
    """Compute each instance norm of a plain sequence together with the ReLU and pool after it.

    Instance norm is group norm with one channel in each group. Where the sequence is the model
    and begins with a convolution, that is computed with them too. The names of parameters stay.
    Torch reads and writes the images of a whole batch for each layer: `conv_net` trains 1.4 to
    1.7 times as fast with blocks (benchmarks/virtual_clients.py). With several channels in a
    group, torch's own layers are faster.
    """
    for prefix, sequence in list(model.named_modules()):
        if type(sequence) is not nn.Sequential:
            continue
        path = f"{prefix}." if prefix else ""
        layers = list(sequence.named_children())
        if len(layers) < len(sequence):
            continue  # A layer stands at two places, and is named once.
        for position, (name, layer) in enumerate(layers):
            if not _is_instance_norm(layer):
                continue
            rest = [following for _, following in layers[position + 1 : position + 3]]
            has_relu = bool(rest) and type(rest[0]) is nn.ReLU
            has_pool = len(rest) > has_relu and _is_plain_pool(rest[int(has_relu)])
            model.set_submodule(path + name, InstanceNormBlock(layer, has_relu, has_pool))
            for merged, _ in layers[position + 1 : position + 1 + has_relu + has_pool]:
                model.set_submodule(path + merged, nn.Identity())
    _merge_first_convolution(model)


def _is_instance_norm(layer: nn.Module) -> TypeGuard[nn.GroupNorm]:
    return (
        type(layer) is nn.GroupNorm and layer.affine and layer.num_groups == layer.num_channels
    )


def _is_plain_pool(layer: nn.Module) -> bool:
    return (
        type(layer) is nn.AvgPool2d
        and layer.kernel_size in (SIDE, (SIDE, SIDE))
        and layer.stride in (SIDE, (SIDE, SIDE))
        and layer.padding in (0, (0, 0))
        and layer.divisor_override is None
        and not layer.ceil_mode
    )


def _merge_first_convolution(model: nn.Module) -> None:
    """Let the block after a model's first convolution compute that convolution too."""
    layers = list(model.named_children())[:2] if type(model) is nn.Sequential else []
    if len(layers) < 2:
        return
    (name, first), (_, block) = layers
    if (
        type(first) is nn.Conv2d
        and isinstance(block, InstanceNormBlock)
        and first.padding_mode == "zeros"
        and not isinstance(first.padding, str)
        and first.groups == 1
        # The inputs of each pixel are stored: they must be smaller than its outputs.
        and 2 * first.weight[0].numel() <= first.out_channels
    ):
        deferred = _DeferredConvolution(first)
        model.set_submodule(name, deferred)
        block.convolve_first(deferred)


@final
class _DeferredConvolution(nn.Module):
    """The parameters of a convolution that the following `InstanceNormBlock` computes."""

    def __init__(self, convolution: nn.Conv2d) -> None:
        super().__init__()
        self.weight, self.bias = convolution.weight, convolution.bias
        self._stride, self._dilation = convolution.stride, convolution.dilation
        self._padding = (int(convolution.padding[0]), int(convolution.padding[1]))

    def forward(self, images: Tensor) -> Tensor:
        """Return the images unchanged."""
        return images

    def convolved(self, images: Tensor) -> Tensor:
        """Return what the convolution returns."""
        return functional.conv2d(
            images, self.weight, self.bias, self._stride, self._padding, self._dilation
        )

    def patches(self, images: Tensor) -> tuple[Float[Tensor, "images inputs pixels"], int]:
        """Return the inputs of each pixel of the outputs, and the height of the outputs."""
        reach = self._dilation[0] * (self.weight.shape[2] - 1) + 1
        height = (images.shape[2] + 2 * self._padding[0] - reach) // self._stride[0] + 1
        size = (self.weight.shape[2], self.weight.shape[3])
        return (
            functional.unfold(images, size, self._dilation, self._padding, self._stride),
            height,
        )


@final
class InstanceNormBlock(nn.Module):
    """The layers that `use_instance_norm_blocks` merges, with the parameters of the norm."""

    def __init__(self, norm: nn.GroupNorm, has_relu: bool, has_pool: bool) -> None:
        super().__init__()
        self.weight, self.bias = norm.weight, norm.bias
        self._settings = _Settings(norm.eps, has_relu, has_pool)
        # In a tuple, so that its parameters are not registered twice.
        self._first: tuple[_DeferredConvolution, ...] = ()

    def convolve_first(self, convolution: _DeferredConvolution) -> None:
        """Compute this convolution before the norm."""
        self._first = (convolution,)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return what the merged layers return, up to rounding."""
        settings, kernel, kernel_bias = self._settings, None, None
        if self._first and not inputs.requires_grad:
            (first,) = self._first
            maps, height = first.patches(inputs)
            kernel, kernel_bias = first.weight.flatten(1), first.bias
            if kernel_bias is None:
                kernel_bias = kernel.new_zeros(len(kernel))
        else:
            images = self._first[0].convolved(inputs) if self._first else inputs
            if images.dim() != 4:
                return self._by_torch(images)
            maps, height = (
                images.permute(0, 2, 3, 1).flatten(1, 2).contiguous(),
                len(images[0, 0]),
            )
        outputs: Tensor = _Block.apply(  # type: ignore[no-untyped-call]
            maps, kernel, kernel_bias, self.weight, self.bias, height, settings
        )
        return outputs.permute(0, 3, 1, 2)

    def _by_torch(self, inputs: Tensor) -> Tensor:
        """Return the same for inputs that are not batches of images."""
        settings = self._settings
        outputs = functional.group_norm(
            inputs, len(self.weight), self.weight, self.bias, settings.epsilon
        )
        outputs = functional.relu(outputs) if settings.has_relu else outputs
        return functional.avg_pool2d(outputs, SIDE) if settings.has_pool else outputs


@final
@dataclass(frozen=True, slots=True)
class _Settings:
    epsilon: float
    has_relu: bool
    has_pool: bool


# Any: torch does not name the type of the context that autograd passes.
@final
class _Block(torch.autograd.Function):
    """The forward pass, and its gradient, derived by hand.

    Inputs are maps of pixels and channels or, if there is a kernel, the patches that it turns
    into such maps. Maps from a kernel are not stored, but computed again for the gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        kernel: Tensor | None,
        kernel_bias: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        height: int,
        settings: _Settings,
    ) -> Tensor:
        count, channels = len(inputs), len(weight)
        pixels = inputs.shape[1 if kernel is None else 2]
        width = pixels // height
        shape = (height // SIDE, width // SIDE) if settings.has_pool else (height, width)
        outputs = inputs.new_empty(count, *shape, channels)
        means, inverses = inputs.new_empty(2, count, 1, channels).unbind()
        block = _images_per_block(inputs, pixels * channels)
        buffers = inputs.new_empty(3, block, pixels, channels)
        for begin in range(0, count, block):
            rows = slice(begin, min(begin + block, count))
            centred, normed, spare = buffers[:, : rows.stop - begin]
            maps = _maps(inputs[rows], kernel, kernel_bias, spare)
            mean = _pixel_sum(maps, 1 / pixels, means[rows])
            torch.sub(maps, mean, out=centred)
            torch.mul(centred, centred, out=normed)
            inverse = _pixel_sum(normed, 1 / pixels, inverses[rows])
            inverse.add_(settings.epsilon).rsqrt_()
            last = normed if settings.has_pool else outputs[rows].flatten(1, 2)
            torch.addcmul(bias, centred, inverse * weight, out=last)
            if settings.has_relu:
                last.clamp_min_(0)
            if settings.has_pool:
                images = last.unflatten(1, (height, width)).permute(0, 3, 1, 2)
                into = outputs[rows].permute(0, 3, 1, 2)
                torch.ops.aten.avg_pool2d.out(images, [SIDE, SIDE], out=into)
        ctx.save_for_backward(inputs, kernel, kernel_bias, weight, bias, means, inverses)
        ctx.height, ctx.settings = height, settings
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs, kernel, kernel_bias, weight, bias, means, inverses = ctx.saved_tensors
        settings: _Settings = ctx.settings
        above = gradients[0]
        # Each pixel of a pool has this share of the pool's gradient.
        share = 1 / SIDE**2 if settings.has_pool else 1.0
        count, channels = len(inputs), len(weight)
        pixels = inputs.shape[1 if kernel is None else 2]
        block = _images_per_block(inputs, pixels * channels)
        # The pixels beyond the last pool have no gradient, and keep this 0.
        passed = inputs.new_zeros(block, ctx.height, pixels // ctx.height, channels)
        spares = inputs.new_empty(2, block, pixels, channels)
        changes = torch.empty_like(inputs) if kernel is None else None
        kernel_sum = _KernelGradient(kernel)
        scales = inverses * weight
        shifts, curves = bias - means * scales, scales * inverses.square() / -pixels
        totals, products = torch.empty_like(scales), torch.empty_like(scales)
        for begin in range(0, count, block):
            rows = slice(begin, min(begin + block, count))
            work, spare = spares[:, : rows.stop - begin]
            maps = _maps(inputs[rows], kernel, kernel_bias, spare)
            if settings.has_relu:
                torch.addcmul(shifts[rows], maps, scales[rows], out=work)
            before = passed[: rows.stop - begin]
            _pass_back(above[rows], work, before, settings)
            gradient = before.flatten(1, 2)
            total = _pixel_sum(gradient, share, totals[rows])
            torch.mul(gradient, maps, out=work)
            product = _pixel_sum(work, share, products[rows])
            product.addcmul_(means[rows], total, value=-1)
            # The norm leaves neither the mean of a channel nor its size: what would change them
            # is taken from the gradient, as a level and as a multiple of the maps.
            slope = curves[rows] * product
            level = (scales[rows] * total / pixels).addcmul_(slope, means[rows])
            torch.addcmul(-level, maps, slope, out=work)
            into = work if changes is None else changes[rows]
            torch.addcmul(work, gradient, scales[rows], value=share, out=into)
            if changes is None:
                kernel_sum.add(inputs[rows], into)
        products *= inverses
        norms = products.sum((0, 1)), totals.sum((0, 1))
        return changes, kernel_sum.kernel, kernel_sum.bias, *norms, None, None


@final
class _KernelGradient:
    """The gradients of a kernel and its bias, summed over images; None without a kernel."""

    def __init__(self, kernel: Tensor | None) -> None:
        self.kernel = None if kernel is None else torch.zeros_like(kernel)
        self.bias = None if kernel is None else kernel.new_zeros(len(kernel))

    def add(
        self,
        patches: Float[Tensor, "images inputs pixels"],
        changes: Float[Tensor, "images pixels channels"],
    ) -> None:
        """Add what these patches contribute, given the gradients of their maps."""
        if self.kernel is not None and self.bias is not None:
            self.kernel += torch.bmm(patches, changes).sum(0).T
            self.bias += changes.sum((0, 1))


def _maps(
    inputs: Float[Tensor, "images first second"],
    kernel: Float[Tensor, "channels inputs"] | None,
    kernel_bias: Float[Tensor, " channels"] | None,
    into: Float[Tensor, "images pixels channels"],
) -> Float[Tensor, "images pixels channels"]:
    """Return the maps: the inputs, or what a kernel makes of patches."""
    if kernel is None or kernel_bias is None:
        return inputs
    kernels = kernel.T.expand(len(inputs), *kernel.T.shape)
    return torch.baddbmm(kernel_bias, inputs.transpose(1, 2), kernels, out=into)


def _pass_back(
    above: Float[Tensor, "images out_height out_width channels"],
    outputs: Float[Tensor, "images pixels channels"],
    into: Float[Tensor, "images height width channels"],
    settings: _Settings,
) -> None:
    """Write the gradient before pool and ReLU."""
    result, before = into, outputs.view(into.shape)
    if settings.has_pool:
        above = above[:, :, None, :, None]
        result, before = _pooled(into, above), _pooled(before, above)
        above = above.expand_as(before)
    if settings.has_relu:
        torch.ops.aten.threshold_backward.grad_input(above, before, 0, grad_input=result)
    else:
        result.copy_(above)


def _pooled(images: Tensor, above: Tensor) -> Tensor:
    """View images as (images, rows, 2, columns, 2, channels), without a last odd pixel."""
    rows, columns = above.shape[1], above.shape[3]
    inside = images[:, : rows * SIDE, : columns * SIDE]
    return inside.view(len(images), rows, SIDE, columns, SIDE, images.shape[-1])


def _images_per_block(inputs: Tensor, numbers: int) -> int:
    """Return how many images of this size fit into a block; at most all inputs."""
    return min(len(inputs), max(1, BLOCK_BYTES // (numbers * inputs.element_size())))


def _pixel_sum(
    maps: Float[Tensor, "images pixels channels"],
    factor: float,
    into: Float[Tensor, "images 1 channels"],
) -> Float[Tensor, "images 1 channels"]:
    """Write a multiple of the sum over pixels, as a product, which reads each number once."""
    count, pixels, _ = maps.shape
    factors = maps.new_full((1, 1, pixels), factor).expand(count, 1, pixels)
    return torch.bmm(factors, maps, out=into)
