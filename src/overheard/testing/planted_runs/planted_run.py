"""Interface of the runs on which attacks are tested."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth


@runtime_checkable
class PlantedRun(Protocol):
    """A run, with its ground truth, the attacker's knowledge and targets.

    Runs are compared by identity: use `@dataclass(frozen=True, eq=False)`.
    """

    def __hash__(self) -> int:
        """Return a hash, so that claims about the run can be cached."""

    @property
    def transcript(self) -> Transcript:
        """All messages of the run."""

    @property
    def truth(self) -> GroundTruth:
        """The ground truth."""

    @property
    def knowledge(self) -> Knowledge:
        """The attacker's knowledge."""

    @property
    def targets(self) -> Sequence[Party]:
        """The targets of claims."""
