"""The lines of a round's `messages.jsonl`, one per message; tensors are in separate files."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from overheard.core.messages import UnstoredKind
from overheard.core.settings import RoundNumber
from overheard.disk.bounded_errors import BOUNDED

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


MAX_AXES = 64
"""The most axes of a tensor, as in NumPy."""

Length = Annotated[int, Field(ge=0, lt=2**48)]
"""The length of an axis of a tensor."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A safetensors file of a message, with its size and digest to verify it."""

    name: str
    size: Annotated[int, Field(ge=0)]
    """Bytes."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor of the model."""

    name: str
    shape: Annotated[tuple[Length, ...], Field(max_length=MAX_AXES)]


@dataclass(frozen=True, slots=True)
class BroadcastLine:
    """A broadcast; it declares the model's tensors, in the model's order."""

    kind: Literal["broadcast"]
    weights: StoredFile
    parameters: tuple[Parameter, ...]
    config: dict[str, str] = field(default_factory=dict)
    control: StoredFile | None = None


@dataclass(frozen=True, slots=True)
class UpdateLine:
    """An update with its metadata.

    It has the tensors of the broadcast, or those of `parameters`: some of the broadcast's
    records, and records of its own.
    """

    kind: Literal["update"]
    delta: StoredFile
    examples: int | None
    metrics: dict[str, float]
    control: StoredFile | None = None
    parameters: tuple[Parameter, ...] | None = None
    texts: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AggregateLine:
    """The aggregate of a cohort."""

    kind: Literal["aggregate"]
    delta: StoredFile
    examples: int | None
    cohort: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DistilledLine:
    """A distilled set: the file holds `inputs`, `labels`, `rates` and `counts`."""

    kind: Literal["distilled"]
    examples: StoredFile


@dataclass(frozen=True, slots=True)
class EvaluationLine:
    """A client's evaluation of the global model on its own data."""

    kind: Literal["evaluation"]
    examples: int | None
    metrics: dict[str, float]
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingReplyLine:
    """A missing reply."""

    kind: Literal["missing"]
    reason: str


@dataclass(frozen=True, slots=True)
class UnstoredLine:
    """A message whose content is not stored."""

    kind: Literal["unstored"]
    content: UnstoredKind
    reason: str
    examples: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    texts: tuple[str, ...] = ()


BodyLine = (
    BroadcastLine
    | UpdateLine
    | AggregateLine
    | DistilledLine
    | EvaluationLine
    | MissingReplyLine
    | UnstoredLine
)


@dataclass(frozen=True, slots=True)
class TimestampsLine:
    """When a message was sent and received, in seconds since 1970."""

    sent: float | None
    received: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """A message: its round, sender, readers, content and times."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    round: RoundNumber
    sender: str
    readers: tuple[str, ...]
    body: Annotated[BodyLine, Field(discriminator="kind")]
    times: TimestampsLine | None = None


LINE_PARSER: TypeAdapter[Line] = TypeAdapter(Annotated[Line, BOUNDED])
"""Parses and serializes one line; rejects unknown keys, wrong types, NaN and infinity."""


def stored_file(body: BodyLine) -> StoredFile | None:
    """Return the tensor file of a message; None if it has none."""
    match body:
        case BroadcastLine():
            return body.weights
        case UpdateLine() | AggregateLine():
            return body.delta
        case DistilledLine():
            return body.examples
        case EvaluationLine() | MissingReplyLine() | UnstoredLine():
            return None


def stored_files(body: BodyLine) -> tuple[StoredFile, ...]:
    """Return all tensor files of a message: that of `stored_file`, then its control variate."""
    control = body.control if isinstance(body, BroadcastLine | UpdateLine) else None
    return tuple(file for file in (stored_file(body), control) if file is not None)
