"""What attacks that learn from labelled updates of known users have in common."""

from abc import ABC

from overheard.core.attack import Rehearsal
from overheard.linkage.prior_updates import Source


class LearnsFromUpdates(ABC):
    """Learns from the updates of shadow devices, or of known users that the attacker trains."""

    __slots__ = ()

    updates: Source
    """Where labelled updates come from."""

    def rehearsal(self) -> Rehearsal:
        """Tell on whose updates it learns."""
        return "known users" if self.updates == "simulated" else "shadow devices"
