"""What was said in a run, whole."""

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
        """Keep what at least one of these parties sent or can read."""
        pool = frozenset(observers)
        return View(
            pool, tuple(m for m in self.messages if m.sender in pool or m.readers & pool)
        )

    def parties(self) -> tuple[Party, ...]:
        """Everyone who sent or could read something, sorted."""
        senders = {m.sender for m in self.messages}
        return tuple(sorted(senders.union(*(m.readers for m in self.messages))))
