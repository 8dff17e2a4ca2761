"""What parties say to each other: the only thing that can leak."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from jaxtyping import Float
from torch import Tensor

from overheard.core.parties import Party

Weights = Mapping[str, Tensor]
"""Parameters by name, as `Module.named_parameters` gives them; may be read lazily from disk."""


def moved(start: Weights, delta: Weights) -> dict[str, Tensor]:
    """The weights that a sender of `delta` arrived at."""
    return {name: weight + delta[name] for name, weight in start.items()}


NO_METRICS: Mapping[str, float] = MappingProxyType({})
NO_CONFIG: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Broadcast:
    """The global model as sent out at the start of a round.

    Args:
        weights: of the global model.
        config: what travels in clear beside them (learning rate, ...), by name, as text.

    """

    weights: Weights
    config: Mapping[str, str] = field(default_factory=lambda: NO_CONFIG)


@dataclass(frozen=True, slots=True)
class Update:
    """One client's answer: its weights minus those it was sent.

    Args:
        delta: local minus global weights.
        examples: how many examples it says it trained on; None where the protocol hides it.
        metrics: whatever else travels in clear beside the weights (train loss, ...).

    """

    delta: Weights
    examples: int | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: NO_METRICS)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The size-weighted mean update of a cohort, where no single update is in the clear."""

    delta: Weights
    cohort: frozenset[Party]
    examples: int | None = None


@dataclass(frozen=True, slots=True)
class DistilledSet:
    """Synthetic examples sent in place of weights (FLiP).

    Args:
        inputs: as the task's, in the order in which they are learned from.
        labels: soft targets.
        rates: step sizes.
        counts: how much each counts in the mean over clients: 0 where its sender has nothing to
            say of its class.

    """

    inputs: Float[Tensor, "examples ..."]
    labels: Float[Tensor, "examples classes"]
    rates: Float[Tensor, " examples"]
    counts: Float[Tensor, " examples"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a client says the global model does on its own data.

    Args:
        metrics: in clear (loss, accuracy, ...), by name.
        examples: how many examples it says it tried; None where the protocol hides it.

    """

    metrics: Mapping[str, float]
    examples: int | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """No answer came: a client failed, was late or was refused. Never the same as a zero."""

    reason: str


Body = Broadcast | Update | Aggregate | DistilledSet | Evaluation | Missing


@dataclass(frozen=True, slots=True)
class Times:
    """When a message was sent and came, in seconds since 1970.

    Args:
        sent: by the sender's clock; None where it does not say.
        received: by the clock of who recorded; None where nobody looked.

    """

    sent: float | None = None
    received: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One thing said in one round, and the parties who can read it.

    Args:
        round: in which it was said, from 0 on.
        sender: who said it.
        readers: who else can read it.
        body: what was said.
        times: when; None in a simulation, which has no clock.

    """

    round: int
    sender: Party
    readers: frozenset[Party]
    body: Body
    times: Times | None = None
