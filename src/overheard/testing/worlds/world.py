"""A run to try an attack on."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth


@runtime_checkable
class World(Protocol):
    """A run, its truth, what the attacker knows, and whom to ask about.

    Two runs are the same only if they are one object: `@dataclass(frozen=True, eq=False)`.
    """

    def __hash__(self) -> int:
        """Anything, so that what is claimed about a run is kept."""

    @property
    def transcript(self) -> Transcript:
        """All that was said."""

    @property
    def truth(self) -> GroundTruth:
        """What was the case."""

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker knows."""

    @property
    def targets(self) -> Sequence[Party]:
        """Whom to ask about."""
