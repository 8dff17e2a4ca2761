"""The mean gradient of the last layer, estimated from an update."""

from dataclasses import dataclass
from math import isfinite

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.messages import Weights
from overheard.learning.last_layer import LastLayer


@dataclass(frozen=True, slots=True)
class LastLayerGradient:
    """Gradient of the loss at the last layer, in float64; `bias` is None if it has none."""

    weight: Float[Tensor, "classes features"]
    bias: Float[Tensor, " classes"] | None


def mean_gradient(
    delta: Weights, layer: LastLayer, total_rate: float
) -> LastLayerGradient | None:
    """Estimate the mean gradient behind an update:  -delta / length.

    For SGD, `total_rate` is rate * steps. This applies results for a single gradient to
    federated averaging; they hold as far as the gradient stays the same over the local steps.

    Returns:
        The gradient, or None if the last layer did not change or is not finite.

    """
    names = [name for name in (layer.weight, layer.bias) if name is not None]
    gradients = [delta[name].double() / -total_rate for name in names]
    # A sum that is finite has finite parts, and one that is not 0 has a part that is not 0.
    sums = [float(gradient.abs().sum()) for gradient in gradients]
    if not all(map(isfinite, sums)) and not all(
        bool(torch.isfinite(one).all()) for one in gradients
    ):
        return None
    if not any(sums):
        return None
    return LastLayerGradient(gradients[0], gradients[1] if layer.bias is not None else None)
