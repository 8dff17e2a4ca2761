"""Observers that are no party of a run: who has the final model, joins late, or is the network.

They send nothing, so no recording names them. What they can read follows from the messages:

- `RELEASE` reads the last broadcast, which is the final model, and nothing else.
- A late joiner reads every broadcast from its round on, as a client that never sends an update.
- `NETWORK` carries all messages. They are encrypted, so it reads none of them, but it sees who
  sends how many bytes to whom and when.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from overheard.core.message_sizes import count_bytes
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    EncryptedMessage,
    Message,
    MissingReply,
)
from overheard.core.parties import SERVER, Party, is_client

RELEASE = Party("release")
"""Whoever has the final model and nothing else of the run."""

NETWORK = Party("network")
"""Whoever carries the encrypted messages, such as a provider."""

OUTSIDER_NAMES = "'release' (the final model), 'late/ROUND' (joins late) or 'network'"
"""All names of outsiders, for an error message."""

_LATE = re.compile(r"late/(0|[1-9][0-9]{0,8})")


def late_joiner(number: int) -> Party:
    """Return the client that joins in this round, reads broadcasts and sends nothing."""
    return Party(f"late/{number}")


def joining_round(party: Party) -> int | None:
    """Return the first round of a late joiner; None for any other party.

    >>> joining_round(Party("late/3")), joining_round(Party("client/3"))
    (3, None)
    """
    match = _LATE.fullmatch(party)
    return None if match is None else int(match[1])


def is_outsider(party: Party) -> bool:
    """Return whether this observer is no party of the run."""
    return party in (RELEASE, NETWORK) or joining_round(party) is not None


def is_participant(observer: Party) -> bool:
    """Return whether this observer is a client of the run, whose own data are known to it."""
    return is_client(observer) and not is_outsider(observer)


def outsiders_read(messages: Sequence[Message], outsiders: Collection[Party]) -> frozenset[int]:
    """Return the positions of the messages that at least one of these outsiders can read."""
    sent = {
        place: message.round
        for place, message in enumerate(messages)
        if isinstance(message.body, Broadcast)
    }
    joined = [number for one in outsiders if (number := joining_round(one)) is not None]
    first = min(joined, default=None)
    last = max(sent.values(), default=None) if RELEASE in outsiders else None
    return frozenset(
        place
        for place, number in sent.items()
        if number == last or (first is not None and number >= first)
    )


def encrypt_messages(
    messages: Sequence[Message], is_readable: Sequence[bool]
) -> Iterator[EncryptedMessage]:
    """Yield what the network sees of the messages that its observers cannot read: no content.

    Missing replies and aggregates were never sent. Nor were the models that follow from a
    distilled set, which the same party sent in the same round.

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
        is_unsent = isinstance(message.body, MissingReply | Aggregate) or is_derived
        if is_known or is_unsent:
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
