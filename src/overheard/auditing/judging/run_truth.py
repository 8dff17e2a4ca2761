"""What the claims about a run are compared with, under the names of each threat."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import final

from overheard.auditing.attack_runner import pseudonyms_of
from overheard.auditing.observed_run import ObservedRun
from overheard.core.parties import Party
from overheard.core.truth import GroundTruth
from overheard.plans.plan import ThreatPlan

NO_CLIENTS: Mapping[Party, Party] = MappingProxyType({})


def no_redraw(truth: GroundTruth, threat: ThreatPlan) -> GroundTruth:
    """Return the ground truth as it is: no partition can be drawn anew."""
    return truth


@final
@dataclass(frozen=True, slots=True)
class RunTruth:
    """The ground truth of a run.

    Args:
        truth: the ground truth; None if unknown.
        redraw: returns it with partitions drawn anew for a threat, in which observing clients
            keep their examples.

    """

    truth: GroundTruth | None
    redraw: Callable[[GroundTruth, ThreatPlan], GroundTruth] = no_redraw

    def for_threat(self, run: ObservedRun, threat: ThreatPlan) -> "ThreatTruth":
        """Return the truth under the names that senders have in a threat, without observers.

        Observers know their own data, so a claim about the cohort is about the other clients.
        """
        pseudonyms, observers = pseudonyms_of(run, threat), threat.observer_parties

        clients = NO_CLIENTS if pseudonyms is None else pseudonyms.clients()
        truth = self.truth
        if truth is None:
            return ThreatTruth(None, None, clients)

        def renamed(truth: GroundTruth) -> GroundTruth:
            named = truth if pseudonyms is None else truth.renamed(pseudonyms)
            return named.without_parties(observers)

        # Partitions drawn anew take long, so only if needed.
        redrawn = cache(lambda: renamed(self.redraw(truth, threat)))
        return ThreatTruth(renamed(truth), redrawn, clients)


@final
@dataclass(frozen=True, slots=True)
class ThreatTruth:
    """The ground truth of a run for the claims of one threat.

    Args:
        truth: the ground truth; None if unknown.
        redrawn: returns it with partitions drawn anew; None if it is unknown.
        clients: the client behind each pseudonym; empty = senders keep their names.

    """

    truth: GroundTruth | None
    redrawn: Callable[[], GroundTruth] | None
    clients: Mapping[Party, Party]
