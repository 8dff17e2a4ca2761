"""How many clients and runs a plan has, from which follows whether a verdict is possible."""

from dataclasses import dataclass
from typing import final

from overheard.findings.threat_verdict import TargetKind

REDRAWN_PARTITIONS = 199
"""Partitions drawn anew for each run of a simulation. The smallest p-value is then 0.005."""


@final
@dataclass(frozen=True, slots=True)
class PlannedSizes:
    """What a threat will observe, as far as the number of pairings depends on it.

    Args:
        runs: number of runs of an arm.
        clients: number of clients of a run.
        rounds: number of rounds of a run.
        about: what the targets are.
        controls: number of natural controls of each run.
        unknown_users: number of clients whose users the attacker does not know.
        redrawn_partitions: number of partitions drawn anew.
        exchanges_records: whether candidate records, at least those of one label, might as well
            have had other owners.

    """

    runs: int
    clients: int
    rounds: int
    about: TargetKind = "clients"
    controls: int = 1
    unknown_users: int = 0
    redrawn_partitions: int = 0
    exchanges_records: bool = False
