"""The rounds of a recording that were asked of clients, and so have spent epsilon."""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    MissingReply,
    Update,
)
from overheard.core.parties import Party, is_client
from overheard.core.transcript import Transcript


@dataclass(frozen=True, slots=True)
class RequestedRounds:
    """The rounds of a recording that were asked of clients.

    Args:
        rounds: number of rounds in which any client was asked.
        most: number of rounds in which the client asked most often was asked.
        clients: number of clients.
        share: mean share of the clients that were asked in a round (0..1); 1 without rounds.

    """

    rounds: int
    most: int
    clients: int
    share: float

    @property
    def are_all_requested(self) -> bool:
        """Whether all clients were asked in all rounds."""
        return self.share == 1


def count_requested_rounds(transcript: Transcript, parties: Collection[str]) -> RequestedRounds:
    """Count the rounds that were asked of clients, whether they replied or not.

    A round counts if a client replied or failed to, or if a model was sent and a later round
    follows; the last round of a run has only the final model.

    Args:
        transcript: all messages of the recording.
        parties: parties that take part, beside those of the messages.

    """
    asked, sent = defaultdict[int, set[Party]](set), set[int]()
    for message in transcript.messages:
        match message.body:
            case Update() | DistilledSet() | MissingReply():
                asked[message.round].add(message.sender)
            case Aggregate(cohort=cohort):
                asked[message.round] |= cohort
            case Broadcast():
                sent.add(message.round)
            case Evaluation():
                pass
    last = max(sent | asked.keys(), default=0)
    rounds = len(asked.keys() | (sent - {last}))
    clients = {one for one in (*transcript.parties(), *map(Party, parties)) if is_client(one)}
    counts = Counter(one for group in asked.values() for one in group)
    places = rounds * max(len(clients), 1)
    return RequestedRounds(
        rounds,
        max(counts.values(), default=0),
        max(len(clients), 1),
        sum(counts.values()) / places if places else 1.0,
    )
