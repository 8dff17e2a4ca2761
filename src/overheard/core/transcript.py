"""The complete transcript of a run, and the one rule of who sees what.

A party reads the messages that it sent and those that are addressed to it. Three external
observers are no party of the run and send nothing:

- `RELEASE` reads the last broadcast, which is the final model, and nothing else.
- A late joiner reads every broadcast from its round on, as a client that never sends an update.
- `NETWORK` carries all messages. They are encrypted, so it cannot read them, but it sees who
  sends how many bytes to whom and when.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    EncryptedMessage,
    Message,
    MissingReply,
    UnstoredMessage,
    count_bytes,
)
from overheard.core.parties import NETWORK, RELEASE, SERVER, Party, is_external, joining_round
from overheard.core.view import View


@dataclass(frozen=True, slots=True)
class Transcript:
    """Every message of a run, in the order in which it was sent."""

    messages: Sequence[Message]

    def seen_by(self, *observers: Party) -> View:
        """Return the messages that at least one of these parties sent or can read.

        If the network is among them, the view has the envelopes of all other messages.
        """
        parties = frozenset(observers)
        external = tuple(filter(is_external, parties))
        told = _externally_readable(self.messages, external) if external else frozenset[int]()
        is_readable = [
            place in told or m.sender in parties or bool(m.readers & parties)
            for place, m in enumerate(self.messages)
        ]
        return View(
            parties,
            tuple(compress(self.messages, is_readable)),
            encrypted=tuple(_encrypt_messages(self.messages, is_readable))
            if NETWORK in parties
            else (),
        )

    def parties(self) -> tuple[Party, ...]:
        """Return all parties that sent or could read a message, sorted."""
        senders = {m.sender for m in self.messages}
        return tuple(sorted(senders.union(*(m.readers for m in self.messages))))


def _externally_readable(
    messages: Sequence[Message], observers: Collection[Party]
) -> frozenset[int]:
    """Return the positions of the messages that one of these observers can read."""
    sent = {
        place: message.round
        for place, message in enumerate(messages)
        if isinstance(message.body, Broadcast)
    }
    joined = [number for one in observers if (number := joining_round(one)) is not None]
    first = min(joined, default=None)
    last = max(sent.values(), default=None) if RELEASE in observers else None
    return frozenset(
        place
        for place, number in sent.items()
        if number == last or (first is not None and number >= first)
    )


def _encrypt_messages(
    messages: Sequence[Message], is_readable: Sequence[bool]
) -> Iterator[EncryptedMessage]:
    """Yield what the network sees of the messages that its observers cannot read: no content.

    Missing replies and aggregates were never sent. Nor were the models that follow from a
    distilled set, which the same party sent in the same round. The size of a message that is
    not stored is unknown, so it is left out.

    Args:
        messages: all messages of a run.
        is_readable: whether the observers can read each of them.

    """
    distilled = {
        (message.round, message.sender)
        for message in messages
        if isinstance(message.body, DistilledSet)
    }
    for message, is_known in zip(messages, is_readable, strict=True):
        is_derived = (message.round, message.sender) in distilled and not isinstance(
            message.body, DistilledSet
        )
        is_unsent = isinstance(message.body, MissingReply | Aggregate | UnstoredMessage)
        if is_known or is_unsent or is_derived:
            continue
        # A masked update has no reader, but it was sent to the server.
        receivers = message.readers or frozenset({SERVER})
        yield EncryptedMessage(
            message.round,
            message.sender,
            receivers,
            count_bytes(message.body),
            message.times,
        )
