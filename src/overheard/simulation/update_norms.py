"""A probe of the norms of an update."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.messages import Weights
from overheard.simulation.probe import Probe, ProbeContext

MIN_NORM = 1e-12
"""A lower bound of norms, so that the logarithm of an update of zeros is finite."""


@final
@dataclass(frozen=True, slots=True)
class UpdateNorms(Probe):
    """Natural logarithm of the L2 norm of the whole update, then of each of its tensors.

    Tensors are in the order of the broadcast.
    """

    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients norms"]:
        """Return the norms of each client's update."""
        names = list(context.broadcast)
        squares = torch.stack(
            [
                torch.stack([delta[name].double().square().sum() for name in names])
                for delta in deltas
            ]
        )  # (clients, tensors)
        norms = torch.cat((squares.sum(1, keepdim=True), squares), 1).sqrt()
        return norms.clamp(min=MIN_NORM).log().float()
