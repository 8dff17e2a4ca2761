"""Bytes sent in a run."""

from dataclasses import dataclass
from math import prod
from pathlib import Path

from overheard.archive.weights import StoredWeights
from overheard.core.errors import TranscriptError
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    MessageBody,
    MissingReply,
    Update,
)
from overheard.core.parties import SERVER, Party, is_shadow_device
from overheard.core.transcript import Transcript

MAX_BYTES_PER_NUMBER = 8
"""Most bytes of one number."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Size of the tensors of all messages, in bytes.

    Every number counts at its own width. Compression or a sparse encoding would need less.
    Names, sizes, metrics and transport encryption are not counted.

    Args:
        up: bytes sent by clients.
        down: bytes sent by the server, counted once for each client that could read them.
        answers: number of client-round pairs in which the client sent something.
        heard: number of client-round pairs in which the client could read a message of the
            server, including the closing broadcast.

    """

    up: int
    down: int
    answers: int
    heard: int

    @property
    def up_per_client_round(self) -> float | None:
        """Mean bytes that a client sends in a round; None if no client sent anything."""
        return self.up / self.answers if self.answers else None

    @property
    def down_per_client_round(self) -> float | None:
        """Mean bytes that a client receives in a round; None if no client received anything."""
        return self.down / self.heard if self.heard else None


def measure_traffic(transcript: Transcript) -> Traffic:
    """Measure the traffic of a run from its messages.

    With secure aggregation each client of the cohort sends a masked message at least as large
    as the aggregate. If the transcript has only the aggregate, each client counts with that
    size. Shadow devices belong to the server, so their messages do not count.

    Args:
        transcript: the original transcript; models derived from distilled sets would count.

    Raises:
        TranscriptError: if the header of a weights file is damaged.

    """
    up, aggregates = dict[tuple[int, Party], int](), dict[tuple[int, Party], int]()
    down, received = 0, set[tuple[int, Party]]()
    for message in transcript.messages:
        size = _size_of(message.body)
        if message.sender == SERVER:
            receivers = [party for party in message.readers if not is_shadow_device(party)]
            down += size * len(receivers)
            received.update((message.round, party) for party in receivers)
        elif isinstance(message.body, Aggregate):
            aggregates.update(((message.round, party), size) for party in message.body.cohort)
        elif size:
            place = (message.round, message.sender)
            up[place] = up.get(place, 0) + size
    sent = {
        place: size
        for place, size in (aggregates | up).items()
        if not is_shadow_device(place[1])
    }
    return Traffic(sum(sent.values()), down, len(sent), len(received))


def _size_of(body: MessageBody) -> int:
    """Count the bytes of the tensors in a message."""
    match body:
        case Broadcast():
            sent = [body.weights, body.control]
        case Update():
            sent = [body.delta, body.control]
        case Aggregate():
            sent = [body.delta]
        case DistilledSet():
            parts = (body.inputs, body.labels, body.rates, body.counts)
            return sum(part.numel() * part.element_size() for part in parts)
        case Evaluation() | MissingReply():
            return 0
    total = 0
    for weights in sent:
        if isinstance(weights, StoredWeights):
            total += _size_on_disk(weights.path, sum(map(prod, weights.shapes.values())))
        elif weights is not None:
            total += sum(one.numel() * one.element_size() for one in weights.values())
    return total


def _size_on_disk(path: Path, numbers: int) -> int:
    """Return the bytes of this many numbers in a safetensors file; reads the header only.

    The first eight bytes give the length of the header, and the tensors follow without gaps.
    """
    try:
        with path.open("rb") as file:
            head = 8 + int.from_bytes(file.read(8), "little")
        size = path.stat().st_size - head
    except OSError as error:
        raise TranscriptError(f"{path} cannot be read ({error}): copy it again") from error
    if not numbers <= size <= MAX_BYTES_PER_NUMBER * numbers:
        raise TranscriptError(
            f"{path} is too small or too large for the {numbers} numbers that it should hold: "
            "copy the whole transcript again"
        )
    return size
