"""How many bytes travelled in a run."""

from dataclasses import dataclass
from math import prod
from pathlib import Path

from overheard.archive.weights import StoredWeights
from overheard.core.errors import TranscriptError
from overheard.core.messages import (
    Aggregate,
    Body,
    Broadcast,
    DistilledSet,
    Evaluation,
    Missing,
    Update,
)
from overheard.core.parties import SERVER, Party, is_shadow
from overheard.core.transcript import Transcript

WIDEST = 8
"""Bytes of one number at most."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the tensors of all messages take, in bytes.

    Counted is every number of a tensor at its own width: whoever compresses, or sends the few
    numbers that are not 0 with their places, sends less. What travels beside the tensors
    (names, sizes, metrics, the encryption of a transport) is left out.

    Args:
        up: all that clients sent.
        down: all that the server sent, once for each client that could read it.
        answers: how many times a client sent something in a round.
        heard: how many times a client could read something of the server's in a round, the
            closing one included.

    """

    up: int
    down: int
    answers: int
    heard: int

    @property
    def up_each(self) -> float | None:
        """Bytes of a client's answer in a round, mean; None where nobody answered."""
        return self.up / self.answers if self.answers else None

    @property
    def down_each(self) -> float | None:
        """Bytes that a client hears in a round, mean; None where nobody listened."""
        return self.down / self.heard if self.heard else None


def traffic_of(transcript: Transcript) -> Traffic:
    """What travelled, by the messages as they were sent.

    The sum that a server gets behind secure aggregation was sent by nobody: each client of the
    cohort sent a masked message as large as the sum, at least, which counts by that size where
    the transcript does not have it. Shadow devices are the server's own: what they send and
    hear counts as nothing.

    Args:
        transcript: as it was said; models that were rebuilt from distilled sets would count.

    Raises:
        TranscriptError: if a file of weights is damaged at its head.

    """
    up, sums = dict[tuple[int, Party], int](), dict[tuple[int, Party], int]()
    down, heard = 0, set[tuple[int, Party]]()
    for message in transcript.messages:
        size = _size_of(message.body)
        if message.sender == SERVER:
            hearers = [who for who in message.readers if not is_shadow(who)]
            down += size * len(hearers)
            heard.update((message.round, who) for who in hearers)
        elif isinstance(message.body, Aggregate):
            sums.update(((message.round, who), size) for who in message.body.cohort)
        elif size:
            place = (message.round, message.sender)
            up[place] = up.get(place, 0) + size
    own = {place: size for place, size in (sums | up).items() if not is_shadow(place[1])}
    return Traffic(sum(own.values()), down, len(own), len(heard))


def _size_of(body: Body) -> int:
    """Bytes of the tensors in what was said."""
    match body:
        case Broadcast():
            weights = body.weights
        case Update() | Aggregate():
            weights = body.delta
        case DistilledSet():
            parts = (body.inputs, body.labels, body.rates, body.counts)
            return sum(part.numel() * part.element_size() for part in parts)
        case Evaluation() | Missing():
            return 0
    if isinstance(weights, StoredWeights):
        return _size_on_disk(weights.path, sum(map(prod, weights.shapes.values())))
    return sum(one.numel() * one.element_size() for one in weights.values())


def _size_on_disk(path: Path, numbers: int) -> int:
    """Bytes of this many numbers in a file, of which the head alone is read.

    The safetensors format: eight bytes say how long the head is that follows them, and behind
    it the tensors stand without a gap.
    """
    try:
        with path.open("rb") as file:
            head = 8 + int.from_bytes(file.read(8), "little")
        size = path.stat().st_size - head
    except OSError as error:
        raise TranscriptError(f"{path} cannot be read ({error}): copy it anew") from error
    if not numbers <= size <= WIDEST * numbers:
        raise TranscriptError(
            f"{path} has no room for the {numbers} numbers that it should hold: copy the "
            "transcript anew, whole"
        )
    return size
