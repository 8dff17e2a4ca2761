"""The messages that parties exchange."""

from abc import abstractmethod
from cmath import isfinite
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from overheard.core.parties import Party

if TYPE_CHECKING:  # so that `overheard show` need not load torch
    import torch

Weights = Mapping[str, "torch.Tensor"]
"""Parameters by name, as from `Module.named_parameters`; may be read lazily from disk."""


class SizedWeights(Mapping[str, "torch.Tensor"]):
    """Weights that state their size without being read."""

    __slots__ = ()

    @abstractmethod
    def count_bytes(self) -> int:
        """Return the bytes of all numbers as they were sent, each at its own width."""


def apply_update(start: Weights, delta: Weights) -> "dict[str, torch.Tensor]":
    """Return the weights that result from adding an update's `delta` to `start`."""
    return {name: weight + delta[name] for name, weight in start.items()}


def is_finite(tensor: "torch.Tensor") -> bool:
    """Return whether all elements are finite."""
    # A finite sum implies finite elements, and takes a seventh of the time or less.
    return isfinite(tensor.sum().item()) or bool(tensor.isfinite().all())


def weighted_sum(deltas: Sequence[Weights], factors: Sequence[float]) -> Weights:
    """Return the sum of deltas times their factors, in float64 and in the given order.

    It is computed one tensor at a time, so that lazily read updates are never in memory
    together.
    """
    total_of = {}
    for name in deltas[0]:
        first = deltas[0][name]
        total = first.double() * factors[0]
        for delta, factor in zip(deltas[1:], factors[1:], strict=True):
            total += delta[name].double() * factor
        total_of[name] = total.to(first.dtype)
    return total_of


NO_METRICS: Mapping[str, float] = MappingProxyType({})
NO_CONFIG: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Broadcast:
    """The global model as sent at the start of a round.

    Args:
        weights: the weights of the global model.
        config: configuration sent in clear text (learning rate, ...), by name, as text.
        control: the server's control variate (SCAFFOLD), with the tensors of the weights; None
            = none is sent.

    """

    weights: Weights
    config: Mapping[str, str] = field(default_factory=lambda: NO_CONFIG)
    control: Weights | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """A client's update: its local weights minus the global weights.

    Args:
        delta: local minus global weights.
        examples: number of training examples the client reports; None if the protocol hides it.
        metrics: other metadata sent in clear text (training loss, ...), by name.
        control: the change of the client's control variate (SCAFFOLD), with the tensors of the
            delta; None = none is sent.
        texts: names of the texts and bytes sent in clear text, whose content is not stored.
        absent: names of tensors that were not sent; the delta has zeros for them.

    """

    delta: Weights
    examples: int | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: NO_METRICS)
    control: Weights | None = None
    texts: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The mean update of a cohort whose single updates cannot be read.

    Args:
        delta: the mean of the updates, weighted by their numbers of examples.
        cohort: the clients whose updates are aggregated.
        examples: the total number of their examples; None if the protocol hides it.

    """

    delta: Weights
    cohort: frozenset[Party]
    examples: int | None = None


@dataclass(frozen=True, slots=True)
class DistilledSet:
    """Synthetic examples sent in place of weights (FLiP).

    Args:
        inputs: (examples, ...), shaped as the task's inputs, in the order of training steps.
        labels: (examples, classes), soft targets.
        rates: (examples), learning rates of the steps.
        counts: (examples), weight of each synthetic example in the mean over clients; 0 if the
            client that sent it holds no example of its class.

    """

    inputs: "torch.Tensor"
    labels: "torch.Tensor"
    rates: "torch.Tensor"
    counts: "torch.Tensor"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A client's report on the global model's performance on its own data.

    Args:
        metrics: in clear text (loss, accuracy, ...), by name.
        examples: number of evaluation examples reported; None if the protocol hides it.
        texts: names of the texts and bytes sent in clear text, whose content is not stored.

    """

    metrics: Mapping[str, float]
    examples: int | None = None
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingReply:
    """A missing reply: the client failed, was late or was rejected. Not a zero update."""

    reason: str


UnstoredKind = Literal["masked", "weights", "codes", "text", "bytes", "other"]
"""What a message has that is not stored: weights that secure aggregation masks or that are
encrypted, so that nobody can read them; weights that do not fit the broadcast; whole-number
codes of weights; text, such as trees in JSON; bytes; or anything else."""


@dataclass(frozen=True, slots=True)
class UnstoredMessage:
    """A message that arrived, of which only the clear text beside its content is stored.

    Unless its content is masked, its readers can read it: that it is not stored does not mean
    that it is hidden.

    Args:
        kind: what its content is.
        reason: why it is not stored.
        examples: number of training examples that it reports; None = none.
        metrics: other numbers in clear text, by name.
        texts: names of the texts and bytes in clear text.

    """

    kind: UnstoredKind
    reason: str
    examples: int | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: NO_METRICS)
    texts: tuple[str, ...] = ()


MessageBody = (
    Broadcast | Update | Aggregate | DistilledSet | Evaluation | MissingReply | UnstoredMessage
)


def count_bytes(body: MessageBody) -> int:
    """Return the bytes of the tensors in a message; 0 if it has none.

    Every number counts at its own width. Compression or a sparse encoding would need less.
    Names, sizes, metrics and encryption are not counted.
    """
    match body:
        case Broadcast():
            sent = (body.weights, body.control)
        case Update():
            sent = (body.delta, body.control)
        case Aggregate():
            sent = (body.delta, None)
        case DistilledSet():
            parts = (body.inputs, body.labels, body.rates, body.counts)
            return sum(part.numel() * part.element_size() for part in parts)
        case Evaluation() | MissingReply() | UnstoredMessage():
            return 0
    # No function of its own: a run-time type check of its argument would read a tensor.
    return sum(
        weights.count_bytes()
        if isinstance(weights, SizedWeights)
        else sum(one.numel() * one.element_size() for one in weights.values())
        for weights in sent
        if weights is not None
    )


@dataclass(frozen=True, slots=True)
class Timestamps:
    """When a message was sent and received, in seconds since 1970.

    Args:
        sent: by the sender's clock; None if not recorded.
        received: by the recorder's clock; None if not recorded.

    """

    sent: float | None = None
    received: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message of one round, and the parties that can read it.

    Args:
        round: round number, from 0.
        sender: the party that sent it.
        readers: the other parties that can read it.
        body: the content.
        times: when it was sent and received; None in a simulation, which has no clock.

    """

    round: int
    sender: Party
    readers: frozenset[Party]
    body: MessageBody
    times: Timestamps | None = None


@dataclass(frozen=True, slots=True)
class EncryptedMessage:
    """A message of which only the envelope can be seen.

    Args:
        round: round number, from 0.
        sender: the party that sent it.
        receivers: the parties to which it was sent.
        size: bytes of its tensors.
        times: when it was sent and received; None in a simulation, which has no clock.

    """

    round: int
    sender: Party
    receivers: frozenset[Party]
    size: int
    times: Timestamps | None = None
