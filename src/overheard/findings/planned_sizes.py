"""How many clients and runs a plan has, from which follows whether a verdict is possible."""

from dataclasses import dataclass
from typing import final

from overheard.federation.sampling import clients_per_round
from overheard.findings.threat_verdict import TargetKind

REDRAWN_PARTITIONS = 199
"""Partitions drawn anew for each run of a simulation. The smallest p-value is then 0.005."""


@final
@dataclass(frozen=True, slots=True)
class PlannedSizes:
    """What a threat will observe, as far as the number of pairings depends on it.

    Args:
        runs: number of runs of an arm.
        clients: number of clients of a run, those that observe included.
        rounds: number of rounds of a run.
        about: what the targets are.
        controls: number of natural controls of each run.
        unknown_users: number of clients whose users the attacker does not know.
        redrawn_partitions: number of partitions drawn anew.
        exchanges_records: whether candidate records, at least those of one label, might as well
            have had other owners.
        observing_clients: number of clients that observe, which are no targets.
        participation: share of the clients that are sampled in each round.
        equal_clients: if the plan states label shares, how many clients have each of them; () =
            none are stated.
        are_cohorts_equal: whether all runs have a cohort with the same label shares.

    """

    runs: int
    clients: int
    rounds: int
    about: TargetKind = "clients"
    controls: int = 1
    unknown_users: int = 0
    redrawn_partitions: int = 0
    exchanges_records: bool = False
    observing_clients: int = 0
    participation: float = 1.0
    equal_clients: tuple[int, ...] = ()
    are_cohorts_equal: bool = False

    @property
    def senders(self) -> int:
        """The most targets that send an update in a round."""
        sampled = clients_per_round(self.clients, self.participation)
        return max(0, min(sampled, self.clients - self.observing_clients))

    @property
    def targets(self) -> int:
        """The most clients that are targets: sampled in any round, and no observers."""
        sampled = clients_per_round(self.clients, self.participation) * self.rounds
        return max(0, min(sampled, self.clients - self.observing_clients))
