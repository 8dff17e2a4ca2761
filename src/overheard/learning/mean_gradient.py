"""The mean gradient of the last layer, estimated from an update."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.messages import Weights
from overheard.learning.custom_networks.single_output import change_by_class
from overheard.learning.last_layer import LastLayer

STACK_BYTES = 2**22
"""The most memory for the last layers of several clients, so that they stay in the cache."""


@dataclass(frozen=True, slots=True)
class LastLayerGradient:
    """Gradient of the loss at the last layer, in float64; `bias` is None if it has none."""

    weight: Float[Tensor, "classes features"]
    bias: Float[Tensor, " classes"] | None


@dataclass(frozen=True, slots=True)
class LastLayerGradients:
    """The gradients of several clients, in float64.

    Args:
        weight: of the last layer's weight.
        bias: of its bias; None if it has none.
        is_usable: False for a client whose last layer did not change or is not finite.

    """

    weight: Float[Tensor, "clients classes features"]
    bias: Float[Tensor, "clients classes"] | None
    is_usable: Bool[Tensor, " clients"]


def mean_gradient(
    delta: Weights, layer: LastLayer, total_rate: float
) -> LastLayerGradient | None:
    """Estimate the mean gradient behind an update, as `mean_gradients`.

    Returns:
        The gradient, or None if the last layer did not change or is not finite.

    """
    (found,) = mean_gradients([delta], layer, [total_rate])
    if not found.is_usable[0]:
        return None
    return LastLayerGradient(found.weight[0], None if found.bias is None else found.bias[0])


def mean_gradients(
    deltas: Sequence[Weights], layer: LastLayer, total_rates: Sequence[float]
) -> Iterator[LastLayerGradients]:
    """Estimate the mean gradients behind updates:  -delta / length, for some at a time.

    For SGD, a total rate is rate * steps. This applies results for a single gradient to
    federated averaging; they hold as far as the gradient stays the same over the local steps.

    Args:
        deltas: the updates; only their last layers are read.
        layer: the last layer.
        total_rates: the length of each update.

    """
    size = _clients_per_stack(deltas[0][layer.weight]) if deltas else 1
    lengths = torch.tensor(total_rates, dtype=torch.float64)
    for start in range(0, len(deltas), size):
        part = slice(start, start + size)
        weight = torch.stack(
            [change_by_class(delta[layer.weight]) for delta in deltas[part]]
        ).double()
        weight = weight / -lengths[part, None, None]
        gradients, bias = [weight.flatten(1)], None
        if layer.bias is not None:
            bias = torch.stack(
                [change_by_class(delta[layer.bias]) for delta in deltas[part]]
            ).double()
            bias = bias / -lengths[part, None]
            gradients.append(bias)
        is_finite = torch.stack([one.isfinite().all(1) for one in gradients]).all(0)
        is_changed = torch.stack([(one != 0).any(1) for one in gradients]).any(0)
        yield LastLayerGradients(weight, bias, is_finite & is_changed)


def _clients_per_stack(weight: Tensor) -> int:
    # Attacks also compute outputs of each class for the features of each class.
    numbers = max(weight.numel(), len(weight) ** 2)
    return max(1, STACK_BYTES // (torch.float64.itemsize * numbers))
