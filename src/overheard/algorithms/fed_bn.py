"""FedBN: batch norms stay with each client, and all other layers are averaged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from overheard.core.algorithm.algorithm import (
    Algorithm,
    MeanKind,
    ReceivedUpdate,
    mean_factors,
)


@final
@dataclass(frozen=True)
class FedBn(Algorithm):
    """Each client keeps the parameters and running statistics of its batch norms.

    The server averages the other tensors as in FedAvg (Li et al. 2021, Algorithm 1).

    Leak: less than FedAvg to all observers. Running means and variances summarise the inputs
    of a client, and no message has them. All other tensors are sent as before. Attackers assume
    the initial values of the batch norms.

    Args:
        mean: whether updates are weighted by their numbers of examples, or all alike.

    """

    name: ClassVar[str] = "fed_bn"
    source: ClassVar[str] = "Li et al. 2021 (FedBN, arXiv 2102.07623), Algorithm 1"

    mean: MeanKind = "examples"

    def local_tensors(self, model: nn.Module) -> frozenset[str]:
        """Return the names of the parameters and buffers of all batch norms."""
        return frozenset(
            f"{path}.{name}" if path else name
            for path, module in model.named_modules()
            if isinstance(module, _BatchNorm)
            for name, _ in (*module.named_parameters(), *module.named_buffers())
        )

    def factors(self, received: Sequence[ReceivedUpdate]) -> tuple[float, ...]:
        """Return the weights of the mean."""
        return mean_factors(received, self.mean)
