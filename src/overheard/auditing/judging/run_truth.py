"""What the claims about a run are compared with, under the names of each threat."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from overheard.auditing.attack_runner import pseudonyms_of
from overheard.auditing.inputs import AuditInputs
from overheard.auditing.observed_run import ObservedRun
from overheard.core.parties import Party
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.federation.federation import Federation
from overheard.plans.plan import ThreatPlan

NO_CLIENTS: Mapping[Party, Party] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A simulated run, whose partition can be drawn anew.

    Args:
        audit_inputs: the plan and its data.
        federation: the run.
        seed: its seed.

    """

    audit_inputs: AuditInputs
    federation: Federation
    seed: int

    def with_redrawn(self, truth: GroundTruth, threat: ThreatPlan) -> GroundTruth:
        """Return the truth with partitions drawn anew, if a question of the threat needs them.

        Observing clients keep their examples.
        """
        drawn = self.audit_inputs.redrawn_counts(self.seed, threat)
        held = truth.facts.get(LabelCounts)
        if held is None or not drawn:
            return truth
        place_of = {one: place for place, one in enumerate(self.federation.clients)}
        redrawn = {
            # An arm with more rounds keeps the last partition.
            (number, party): drawn[min(number, len(drawn) - 1)][place_of[party]]
            for number, party in held.counts
            if place_of.get(party, len(drawn[0])) < len(drawn[0])
        }
        return truth.having(LabelCounts(held.counts, redrawn))


@final
@dataclass(frozen=True, slots=True)
class RunTruth:
    """The ground truth of a run.

    Args:
        truth: the ground truth; None if unknown.
        drawn: how its partition was drawn; None = it cannot be drawn anew.

    """

    truth: GroundTruth | None
    drawn: DrawnRun | None = None

    def for_threat(self, run: ObservedRun, threat: ThreatPlan) -> "ThreatTruth":
        """Return the truth under the names that senders have in a threat, without observers.

        Observers know their own data, so a claim about the cohort is about the other clients.
        """
        pseudonyms, observers = pseudonyms_of(run, threat), threat.observer_parties
        clients = NO_CLIENTS if pseudonyms is None else pseudonyms.clients()
        truth = self.truth
        if truth is None:
            return ThreatTruth(None, clients)
        if self.drawn is not None:
            truth = self.drawn.with_redrawn(truth, threat)
        if pseudonyms is not None:
            truth = truth.renamed(pseudonyms)
        return ThreatTruth(truth.without_parties(observers), clients)


@final
@dataclass(frozen=True, slots=True)
class ThreatTruth:
    """The ground truth of a run for the claims of one threat.

    Args:
        truth: the ground truth; None if unknown.
        clients: the client behind each pseudonym; empty = senders keep their names.

    """

    truth: GroundTruth | None
    clients: Mapping[Party, Party]
