"""The rounds in which the data of clients changed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from overheard.core.parties import COHORT, Party
from overheard.core.truth import Renaming, TrueFact


@final
@dataclass(frozen=True, slots=True)
class Shifts(TrueFact):
    """By client, the rounds in which its data distribution changed, in order.

    New examples of the same distribution are no shift.
    """

    shifts: Mapping[Party, tuple[int, ...]]

    how_to_get = (
        "the ground truth states no shifts: let the data of clients change (data.shifts in a "
        "plan, `shifts` in the truth of a recording), or ask another question"
    )

    def shifts_of(self, target: Party) -> tuple[int, ...]:
        """Return in order the rounds in which the party's data shifted; any, for `COHORT`."""
        rounds = {
            number
            for party, numbers in self.shifts.items()
            if target in (party, COHORT)
            for number in numbers
        }
        return tuple(sorted(rounds))

    def renamed(self, names: Renaming) -> "Shifts | None":
        """Return the shifts by the new names of clients, if they keep them over rounds."""
        return (
            replace(self, shifts=names.rename_parties(self.shifts))
            if names.keeps_names
            else None
        )
