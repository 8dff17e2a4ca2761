"""Base class of attacks that learn from updates of known users."""

from abc import ABC

from overheard.core.attack import TrainingSource
from overheard.linkage.known_updates import UpdateSource


class LearnsFromUpdates(ABC):
    """Base of attacks that learn from updates of shadow devices or of simulated known users."""

    __slots__ = ()

    updates: UpdateSource
    """Source of the known updates."""

    def training_source(self) -> TrainingSource:
        """Return whose updates the attack learns from."""
        return "known users" if self.updates == "simulated" else "shadow devices"
