"""Targets that were heard alike, and so can be learned about from the same virtual clients."""

from collections.abc import Sequence
from dataclasses import dataclass

from overheard.core.parties import COHORT, Party
from overheard.core.view import View
from overheard.simulation.bank import cohort_members, rounds_heard


@dataclass(frozen=True, slots=True)
class HeardAlike:
    """Targets, the rounds in which each of them was heard, and of how many clients each is.

    Args:
        targets: in the order in which they were asked about.
        rounds: those of an update and a broadcast, earliest first.
        members: clients of whom an update is the mean; None = a single client's.

    """

    targets: tuple[Party, ...]
    rounds: tuple[int, ...]
    members: int | None

    @property
    def clients(self) -> int:
        """Of how many clients an update is the mean: 1 of a single client's."""
        return 1 if self.members is None else self.members


def heard_alike(
    view: View, targets: Sequence[Party], most_rounds: int
) -> tuple[HeardAlike, ...]:
    """Group the targets, taking the first `most_rounds` rounds of each."""
    groups: dict[tuple[tuple[int, ...], int | None], list[Party]] = {}
    for target in targets:
        rounds = rounds_heard(view, target)[:most_rounds]
        members = cohort_members(view, rounds) if target == COHORT else None
        groups.setdefault((rounds, members), []).append(target)
    return tuple(
        HeardAlike(tuple(alike), rounds, members) for (rounds, members), alike in groups.items()
    )
