"""FedNova: the server averages updates per local step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.algorithm.algorithm import (
    LOCAL_STEPS,
    Algorithm,
    MeanKind,
    ReceivedUpdate,
    mean_factors,
)
from overheard.core.defense import Defense
from overheard.core.errors import PlanError
from overheard.core.recipe import Recipe


@final
@dataclass(frozen=True)
class FedNova(Algorithm):
    """The server divides each update by its local steps, and takes a step of their mean number.

    delta = (sum p_i a_i) * sum p_i delta_i / a_i, where p_i are the weights of the mean and a_i
    is the number of local steps (Wang et al. 2020, Section 4.1). With momentum rho of the
    clients it is a_i = (steps - rho (1 - rho^steps) / (1 - rho)) / (1 - rho) (Section 4.2).

    Leak: more than FedAvg to the server. Each client sends its number of local steps, which
    tells its number of batches also where its number of examples is hidden, and the epochs of a
    slow device. Clients learn less: the factors of the others are unknown to them, so that
    attacks of clients on the mean update are refused.

    Args:
        mean: whether updates are weighted by their numbers of examples, or all alike.

    """

    name: ClassVar[str] = "fed_nova"
    source: ClassVar[str] = "Wang et al. 2020 (arXiv 2007.07481), Sections 4.1 and 4.2"
    hidden_mean: ClassVar[str] = (
        "the mean update of a round: this algorithm scales each update by its client's number "
        "of local steps, which other clients do not know"
    )

    mean: MeanKind = "examples"

    def conflict(self, recipe: Recipe, defenses: Sequence[Defense]) -> str:
        """Return why it cannot run: other optimizers, or masks that hide single updates."""
        if recipe.optimizer != "sgd":
            return f"fed_nova knows the length of SGD's steps, not of {recipe.optimizer}'s"
        masking = [one.name for one in defenses if one.masks_updates]
        if masking:
            return f"fed_nova scales single updates, which {masking[0]} hides from the server"
        return ""

    @property
    def adds_mean(self) -> bool:
        """Return false: the server does not add the mean update itself."""
        return False

    def reported_steps(self, recipe: Recipe, steps: int) -> float:
        """Return a_i: the number of steps, each weighted by what momentum adds to it."""
        rho = recipe.momentum
        return (steps - rho * (1 - rho**steps) / (1 - rho)) / (1 - rho)

    def factors(self, received: Sequence[ReceivedUpdate]) -> tuple[float, ...]:
        """Return p_i * (sum over k of p_k a_k) / a_i for each update i."""
        weights = mean_factors(received, self.mean)
        lengths = [_reported_length(one) for one in received]
        mean = sum(w * length for w, length in zip(weights, lengths, strict=True))
        return tuple(w * mean / length for w, length in zip(weights, lengths, strict=True))


def _reported_length(received: ReceivedUpdate) -> float:
    length = received.update.metrics.get(LOCAL_STEPS)
    if not length:
        raise PlanError(
            f"fed_nova needs the metric {LOCAL_STEPS} of {received.sender}, which a defense "
            "removed: choose another algorithm or defense"
        )
    return length
