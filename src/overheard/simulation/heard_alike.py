"""Groups of targets that can share virtual clients, since they have the same rounds."""

from collections.abc import Sequence
from dataclasses import dataclass

from overheard.core.parties import COHORT, Party
from overheard.core.view import View
from overheard.simulation.bank import cohort_members, rounds_heard


@dataclass(frozen=True, slots=True)
class HeardAlike:
    """Targets with the same rounds and the same cohort size.

    Args:
        targets: in the order of the request.
        rounds: with an update and a broadcast, earliest first.
        members: the cohort size of an update; None = updates of single clients.

    """

    targets: tuple[Party, ...]
    rounds: tuple[int, ...]
    members: int | None

    @property
    def clients(self) -> int:
        """Return the number of clients per update: the cohort size, or 1."""
        return 1 if self.members is None else self.members


def heard_alike(
    view: View, targets: Sequence[Party], most_rounds: int
) -> tuple[HeardAlike, ...]:
    """Group the targets by their first `most_rounds` rounds and their cohort size."""
    groups: dict[tuple[tuple[int, ...], int | None], list[Party]] = {}
    for target in targets:
        rounds = rounds_heard(view, target)[:most_rounds]
        members = cohort_members(view, rounds) if target == COHORT else None
        groups.setdefault((rounds, members), []).append(target)
    return tuple(
        HeardAlike(tuple(same_targets), rounds, members)
        for (rounds, members), same_targets in groups.items()
    )
