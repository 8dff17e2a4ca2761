"""FedProx: clients are held close to the weights that the server sent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

from annotated_types import Ge

from overheard.core.algorithm.algorithm import (
    Algorithm,
    MeanKind,
    ReceivedUpdate,
    mean_factors,
)
from overheard.core.recipe import Recipe


@final
@dataclass(frozen=True)
class FedProx(Algorithm):
    """Clients add mu / 2 ||w - w(t)||^2 to their loss, w(t) being the weights of the broadcast.

    The server averages as in FedAvg (Li et al. 2020, Algorithm 2).

    Leak: as much as FedAvg to all observers. Updates are shorter, and with many local steps
    closer to the gradient at the broadcast, which attacks on gradients read best. An attacker
    that knows the recipe knows mu, and its virtual clients train with the same penalty.

    Args:
        mu: factor of the penalty.
        mean: whether updates are weighted by their numbers of examples, or all alike.

    """

    name: ClassVar[str] = "fed_prox"
    source: ClassVar[str] = "Li et al. 2020 (arXiv 1812.06127), Algorithm 2"

    mu: Annotated[float, Ge(0)] = 0.1
    mean: MeanKind = "examples"

    def local_recipe(self, recipe: Recipe) -> Recipe:
        """Return the recipe with the penalty."""
        return replace(recipe, proximal=self.mu)

    def factors(self, received: Sequence[ReceivedUpdate]) -> tuple[float, ...]:
        """Return the weights of the mean."""
        return mean_factors(received, self.mean)
