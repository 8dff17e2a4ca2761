"""A probe of the change of the last layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.messages import Weights
from overheard.learning.custom_networks.single_output import change_by_class
from overheard.learning.initialization import fresh_model
from overheard.learning.last_layer import find_last_layer
from overheard.simulation.probe import Probe, ProbeContext


@final
@dataclass(frozen=True, slots=True)
class LastLayerChange(Probe):
    """The change of each class's row of weights and, in the last column, of its bias.

    The last column is 0 if the layer has no bias.
    """

    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients classes columns"]:
        """Return the change of each client; columns are the features and the bias."""
        layer = find_last_layer(fresh_model(context.build_model, context.seed), context.classes)
        weights = torch.stack(
            [change_by_class(delta[layer.weight]) for delta in deltas]
        ).float()
        bias = weights.new_zeros(len(weights), context.classes)
        if layer.bias is not None:
            bias = torch.stack([change_by_class(delta[layer.bias]) for delta in deltas]).float()
        return torch.cat((weights, bias.unsqueeze(2)), 2)  # (clients, classes, features + 1)
