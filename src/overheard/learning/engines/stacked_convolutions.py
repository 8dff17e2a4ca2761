"""Stacked networks of convolutions on a CUDA device: products, and a kernel in Triton."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional
from triton.errors import TritonError

from overheard.core.recipe import LossName, Precision
from overheard.learning.engines.convolution_products import convolve
from overheard.learning.engines.dropout_noise import DropoutNoise
from overheard.learning.engines.instance_norm_kernels import can_run_on, normalise_and_pool
from overheard.learning.engines.stacked_networks import StackedNetworks, write_by_autograd
from overheard.learning.engines.triton_support import refuse_kernels
from overheard.learning.engines.vmapped_networks import VmappedNetworks

BLOCK = (nn.Conv2d, nn.GroupNorm, nn.ReLU, nn.AvgPool2d)
"""The layers of a block: convolution, instance norm, ReLU and pool."""

SIDE = 2
"""Pixels per side that a pool merges."""


@final
class StackedConvolutions(StackedNetworks):
    """Networks of blocks with a convolution, an instance norm, ReLU and a pool each.

    A linear layer follows. Maps are in channels-last order (clients, images, height, width,
    channels). Convolutions are products of all clients at once, and the rest of a block is one
    kernel. Clipped gradients are computed by `VmappedNetworks`, as all are from the moment when
    a kernel cannot be compiled.

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
        *layers, _, self._last = model.children()
        self._blocks = [
            _Block.of(*layers[first : first + len(BLOCK)])
            for first in range(0, len(layers), len(BLOCK))
        ]
        self._smoothing, self._loss = label_smoothing, loss
        self._is_half = precision == "bf16"
        self._fallback = VmappedNetworks(model, label_smoothing, loss)
        self._has_failed = False

    @staticmethod
    def supports(model: nn.Module) -> bool:
        """Return whether this network consists of such blocks, and all of it is trained."""
        layers = list(model.children())
        blocks = (len(layers) - 2) // len(BLOCK)
        return (
            type(model) is nn.Sequential
            and len(layers) == len(model)  # or a layer stands at two places
            and blocks > 0
            and [type(one) for one in layers] == [*BLOCK * blocks, nn.Flatten, nn.Linear]
            and all(map(_is_plain, layers))
            and not any(map(_has_hooks, model.modules()))  # they may change what it computes
            and _has_usual_parameters(model, layers)
            and all(one.requires_grad for one in model.parameters())
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
        remaining = iter(parameters)
        for block in self._blocks:
            numbers = block.run(numbers, [next(remaining) for _ in range(block.parameters)])
        numbers = numbers.permute(0, 1, 4, 2, 3).flatten(2)
        weight, *bias = (one.to(numbers.dtype) for one in remaining)
        if bias:
            numbers = torch.baddbmm(bias[0].unsqueeze(1), numbers, weight.transpose(1, 2))
        else:
            numbers = torch.bmm(numbers, weight.transpose(1, 2))
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
                return write_by_autograd(
                    self.logits, *given, loss=self._loss, label_smoothing=self._smoothing
                )
            except TritonError as error:
                refuse_kernels(inputs.device, f"{type(error).__name__}: {str(error)[:200]}")
                self._has_failed = True
        return self._fallback.write_gradients(*given, noise, clip)


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _has_usual_parameters(model: nn.Module, layers: Sequence[nn.Module]) -> bool:
    """Return whether each layer has weight and bias alone, and shares them with no other."""
    names = [name for layer in layers for name, _ in layer.named_parameters()]
    return {*names} <= {"weight", "bias"} and len(names) == len(list(model.parameters()))


def _is_plain(layer: nn.Module) -> bool:
    """Return whether a layer has the settings that a block computes."""
    match layer:
        case nn.Conv2d():
            return (
                layer.stride == (1, 1)
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
            return layer.affine and layer.num_groups == layer.num_channels
        case nn.AvgPool2d():
            return (
                layer.kernel_size in (SIDE, (SIDE, SIDE))
                and layer.stride in (SIDE, (SIDE, SIDE))
                and layer.padding in (0, (0, 0))
                and layer.divisor_override is None
                and not layer.ceil_mode
            )
        case nn.Flatten():
            return (layer.start_dim, layer.end_dim) == (1, -1)
        case _:
            return True


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of a network.

    Args:
        has_bias: whether the convolution has a bias.
        padding: zeros on each side, of the height and of the width.
        epsilon: of the norm.

    """

    has_bias: bool
    padding: tuple[int, int]
    epsilon: float

    @classmethod
    def of(cls, convolution: nn.Module, norm: nn.Module, *others: nn.Module) -> Self:
        """Return the block of these layers."""
        assert isinstance(convolution, nn.Conv2d)
        assert isinstance(norm, nn.GroupNorm)
        padding = int(convolution.padding[0]), int(convolution.padding[1])
        return cls(convolution.bias is not None, padding, norm.eps)

    @property
    def parameters(self) -> int:
        """The number of its parameters."""
        return 3 + self.has_bias

    def run(self, maps: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Return the maps after the pool."""
        kernels, *bias, weight, shift = parameters
        maps = convolve(maps, kernels, bias[0] if bias else None, self.padding)
        run = normalise_and_pool if can_run_on(maps) else normalise_by_torch
        return run(maps, weight, shift, self.epsilon)


def normalise_by_torch(
    maps: Float[Tensor, "clients images height width channels"],
    weight: Float[Tensor, "clients channels"],
    bias: Float[Tensor, "clients channels"],
    epsilon: float,
) -> Float[Tensor, "clients images out_height out_width channels"]:
    """Return what `normalise_and_pool` returns, by torch's own operations."""
    kind = maps.dtype
    numbers = maps.float() if kind == torch.bfloat16 else maps
    variance, mean = torch.var_mean(numbers, (2, 3), correction=0, keepdim=True)
    scale = (variance + epsilon).rsqrt() * weight[:, None, None, None]
    numbers = functional.relu((numbers - mean) * scale + bias[:, None, None, None])
    images = numbers.flatten(0, 1).permute(0, 3, 1, 2)
    pooled = functional.avg_pool2d(images, SIDE).permute(0, 2, 3, 1)
    return pooled.reshape(*maps.shape[:2], *pooled.shape[1:]).to(kind)
