"""One message as a line of a round's `messages.jsonl`; its tensors stand beside it."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A safetensors file beside the line, with what tells whether it is still the same."""

    name: str
    size: int
    """Bytes."""
    sha256: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor of the model."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BroadcastLine:
    """A broadcast; it alone says, in the model's order, what tensors the model has."""

    kind: Literal["broadcast"]
    weights: StoredFile
    parameters: tuple[Parameter, ...]
    config: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UpdateLine:
    """An update with its metadata in clear."""

    kind: Literal["update"]
    delta: StoredFile
    examples: int | None
    metrics: dict[str, float]


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
    """Figures of the global model on a client's own data."""

    kind: Literal["evaluation"]
    examples: int | None
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class MissingLine:
    """No answer."""

    kind: Literal["missing"]
    reason: str


BodyLine = (
    BroadcastLine | UpdateLine | AggregateLine | DistilledLine | EvaluationLine | MissingLine
)


@dataclass(frozen=True, slots=True)
class TimesLine:
    """When a message was sent and came, in seconds since 1970."""

    sent: float | None
    received: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """Who said what kind of thing to whom."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    round: int
    sender: str
    readers: tuple[str, ...]
    body: Annotated[BodyLine, Field(discriminator="kind")]
    times: TimesLine | None = None


PARSER: TypeAdapter[Line] = TypeAdapter(Line)
"""Reads and writes one line; refuses unknown keys, wrong types, NaN and infinity."""


def stored_file(body: BodyLine) -> StoredFile | None:
    """The file that a message's tensors stand in; None where it has none."""
    match body:
        case BroadcastLine():
            return body.weights
        case UpdateLine() | AggregateLine():
            return body.delta
        case DistilledLine():
            return body.examples
        case EvaluationLine() | MissingLine():
            return None
