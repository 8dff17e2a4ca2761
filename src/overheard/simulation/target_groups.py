"""Groups of targets that can share virtual clients, since they have the same rounds."""

from collections.abc import Sequence
from dataclasses import dataclass

from overheard.core.parties import COHORT, Party
from overheard.core.view import View
from overheard.simulation.simulation import median_cohort_size, readable_rounds


@dataclass(frozen=True, slots=True)
class TargetGroup:
    """Targets with the same rounds and the same cohort size.

    Args:
        targets: in the order of the request.
        rounds: with an update and a broadcast, earliest first.
        cohort_size: the cohort size of an update; None = updates of single clients.

    """

    targets: tuple[Party, ...]
    rounds: tuple[int, ...]
    cohort_size: int | None

    @property
    def clients_per_update(self) -> int:
        """Return the number of clients per update: the cohort size, or 1."""
        return 1 if self.cohort_size is None else self.cohort_size


def group_targets(
    view: View, targets: Sequence[Party], most_rounds: int
) -> tuple[TargetGroup, ...]:
    """Group the targets by their first `most_rounds` rounds and their cohort size."""
    groups: dict[tuple[tuple[int, ...], int | None], list[Party]] = {}
    for target in targets:
        rounds = readable_rounds(view, target)[:most_rounds]
        members = median_cohort_size(view, rounds) if target == COHORT else None
        groups.setdefault((rounds, members), []).append(target)
    return tuple(
        TargetGroup(tuple(same_targets), rounds, members)
        for (rounds, members), same_targets in groups.items()
    )
