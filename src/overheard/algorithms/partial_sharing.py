"""Partial sharing: some layers stay with each client, and the others are averaged."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, ClassVar, final

from annotated_types import MinLen
from torch import nn

from overheard.core.algorithm.algorithm import (
    Algorithm,
    MeanKind,
    ReceivedUpdate,
    mean_factors,
)

HEAD = "head"
"""Stands for the last linear layer in place of a pattern."""


@final
@dataclass(frozen=True)
class PartialSharing(Algorithm):
    """Named tensors stay with each client; the server averages the others as in FedAvg.

    Clients train all tensors. Those that stay keep a client's own values from round to round,
    and are in no message. With `stays = ["head"]` it is FedPer (Arivazhagan et al. 2019).

    Leak: less than FedAvg to all observers, who read neither the tensors that stay nor their
    changes. If the last layer stays, attacks that read it are refused, as nobody else
    has it. Otherwise attackers assume the initial values of what stays.

    Args:
        stays: patterns of the names of tensors that stay, such as "0.*"; "head" = the last
            linear layer.
        mean: whether updates are weighted by their numbers of examples, or all alike.

    """

    name: ClassVar[str] = "partial_sharing"
    source: ClassVar[str] = "Arivazhagan et al. 2019 (FedPer, arXiv 1912.00818), Algorithm 1"

    stays: Annotated[tuple[str, ...], MinLen(1)] = (HEAD,)
    mean: MeanKind = "examples"

    def local_tensors(self, model: nn.Module) -> frozenset[str]:
        """Return the names of parameters and buffers that match a pattern."""
        linear = [name for name, one in model.named_modules() if isinstance(one, nn.Linear)]
        patterns = [
            f"{linear[-1]}.*" if pattern == HEAD and linear else pattern
            for pattern in self.stays
        ]
        names = [name for name, _ in (*model.named_parameters(), *model.named_buffers())]
        return frozenset(
            name for name in names if any(fnmatchcase(name, one) for one in patterns)
        )

    def factors(self, received: Sequence[ReceivedUpdate]) -> tuple[float, ...]:
        """Return the weights of the mean."""
        return mean_factors(received, self.mean)
