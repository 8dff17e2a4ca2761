"""Bytes sent in a run."""

from dataclasses import dataclass

from overheard.core.messages import Aggregate, count_bytes
from overheard.core.parties import SERVER, Party, is_shadow_device
from overheard.core.transcript import Transcript


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
        size = count_bytes(message.body)
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
