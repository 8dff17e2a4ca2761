"""The complete transcript of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from overheard.core.messages import Message
from overheard.core.parties import Party
from overheard.core.view import View


@dataclass(frozen=True, slots=True)
class Transcript:
    """Every message of a run, in the order in which it was sent."""

    messages: Sequence[Message]

    def seen_by(self, *observers: Party) -> View:
        """Return the messages that at least one of these parties sent or can read."""
        parties = frozenset(observers)
        return View(
            parties,
            tuple(m for m in self.messages if m.sender in parties or m.readers & parties),
        )

    def parties(self) -> tuple[Party, ...]:
        """Return all parties that sent or could read a message, sorted."""
        senders = {m.sender for m in self.messages}
        return tuple(sorted(senders.union(*(m.readers for m in self.messages))))
