"""The complete transcript of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

from overheard.core.messages import Message
from overheard.core.outsiders import NETWORK, encrypt_messages, is_outsider, outsiders_read
from overheard.core.parties import Party
from overheard.core.view import View


@dataclass(frozen=True, slots=True)
class Transcript:
    """Every message of a run, in the order in which it was sent."""

    messages: Sequence[Message]

    def seen_by(self, *observers: Party) -> View:
        """Return the messages that at least one of these parties sent or can read.

        Outsiders read what `core.outsiders` states. If the network is among the observers, the
        view has the envelopes of all other messages.
        """
        parties = frozenset(observers)
        outsiders = tuple(filter(is_outsider, parties))
        told = outsiders_read(self.messages, outsiders) if outsiders else frozenset[int]()
        is_readable = [
            place in told or m.sender in parties or bool(m.readers & parties)
            for place, m in enumerate(self.messages)
        ]
        return View(
            parties,
            tuple(compress(self.messages, is_readable)),
            encrypted=tuple(encrypt_messages(self.messages, is_readable))
            if NETWORK in parties
            else (),
        )

    def parties(self) -> tuple[Party, ...]:
        """Return all parties that sent or could read a message, sorted."""
        senders = {m.sender for m in self.messages}
        return tuple(sorted(senders.union(*(m.readers for m in self.messages))))
