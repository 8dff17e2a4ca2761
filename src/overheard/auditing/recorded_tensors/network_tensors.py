"""The tensors that a network sends: names, shapes, and the orders in which they are listed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import final

from torch import Tensor, nn

from overheard.archive.weights import Shapes
from overheard.learning.sent_tensors import (
    sent_buffers,
    sent_shapes,
    trainable_parameters,
)

Axes = tuple[int, ...]
"""The order in which `Tensor.permute` puts the axes of a tensor."""

CONVOLUTIONS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)


@final
@dataclass(frozen=True, slots=True)
class NetworkTensors:
    """The tensors that a network sends.

    Args:
        shapes: the shape of each by name, in the network's order.
        buffers: names of those that are buffers, which a run need not send.
        names: by each name that a tensor of the network has, unless it stays with each client,
            the name under which it is sent; tensors that several layers share have several.
        kernels: by name of a kernel, how kernels of inputs x outputs may become as the
            network has them; Keras and JAX have such kernels.
        orders: the orders in which frameworks list the tensors, as names of `names`.
        listed_shapes: the shapes of all tensors in these orders.
        flattened: the name of the layer that reads the flattened outputs of a convolution;
            empty if there is none.
        first: the name of the first weight; empty if there is none.
        last: names of the last linear layer's tensors.

    """

    shapes: Shapes
    buffers: frozenset[str]
    names: Mapping[str, str]
    kernels: Mapping[str, tuple[Axes, ...]]
    orders: tuple[tuple[str, ...], ...]
    listed_shapes: Shapes
    flattened: str
    first: str
    last: tuple[str, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the tensors that a run must have sent."""
        return tuple(name for name in self.shapes if name not in self.buffers)


def network_tensors(network: nn.Module, at_home: Collection[str] = ()) -> NetworkTensors:
    """Return the tensors that a network sends.

    Args:
        network: the network; its numbers are not read.
        at_home: names of tensors that stay with each client.

    """
    shapes = {name: one for name, one in sent_shapes(network).items() if name not in at_home}
    linear = [name for name, one in network.named_modules() if isinstance(one, nn.Linear)]
    names = _sent_names(network)
    last = (f"{linear[-1]}.{part}".lstrip(".") for part in ("weight", "bias") if linear)
    return NetworkTensors(
        shapes,
        frozenset(sent_buffers(network)),
        {name: sent for name, sent in names.items() if sent not in at_home},
        _kernels(network, names),
        _orders(network, at_home),
        {name: tuple(one.shape) for name, one in _all_tensors(network).items()},
        _flattened_layer(network),
        next((name for name, one in shapes.items() if len(one) > 1), ""),
        tuple(names[name] for name in last if names.get(name) in shapes),
    )


def _all_tensors(network: nn.Module) -> dict[str, Tensor]:
    return {
        **dict(network.named_parameters(remove_duplicate=False)),
        **dict(network.named_buffers(remove_duplicate=False)),
    }


def _sent_names(network: nn.Module) -> dict[str, str]:
    """Return by each name the first name of the same tensor, under which it is sent."""
    first = dict[int, str]()
    return {
        name: first.setdefault(id(tensor), name)
        for name, tensor in _all_tensors(network).items()
    }


def _kernels(network: nn.Module, names: Mapping[str, str]) -> dict[str, tuple[Axes, ...]]:
    kernels = dict[str, tuple[Axes, ...]]()
    for path, module in network.named_modules():
        name = f"{path}.weight" if path else "weight"
        if isinstance(module, nn.Linear):
            kernels[names.get(name, name)] = ((1, 0),)
        elif isinstance(module, CONVOLUTIONS):
            # Keras: places, inputs, outputs. Of a depthwise one: places, inputs, multiplier.
            axes = len(module.kernel_size)
            places = tuple(range(axes))
            depthwise = ((axes, axes + 1, *places),) if module.groups > 1 else ()
            kernels[names.get(name, name)] = ((axes + 1, axes, *places), *depthwise)
    return kernels


def _orders(network: nn.Module, at_home: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """Return all lists of the network's tensors that frameworks send, each once."""
    tensors = _all_tensors(network)
    state = [name for name in network.state_dict() if name in tensors]
    numbers = [name for name in state if tensors[name].is_floating_point()]
    parameters = [name for name, _ in network.named_parameters()]
    buffers = [name for name in numbers if name in sent_buffers(network)]
    orders = (
        state,
        numbers,
        parameters,
        [*parameters, *buffers],
        list(sent_shapes(network)),
        list(trainable_parameters(network)),
    )
    sent = (tuple(name for name in order if name not in at_home) for order in orders)
    return tuple(dict.fromkeys(sent))


def _flattened_layer(network: nn.Module) -> str:
    channels = 0
    for path, module in network.named_modules():
        if isinstance(module, CONVOLUTIONS):
            channels = module.out_channels
        elif isinstance(module, nn.Linear):
            has_places = module.in_features > channels > 0
            return path if has_places and module.in_features % channels == 0 else ""
    return ""
