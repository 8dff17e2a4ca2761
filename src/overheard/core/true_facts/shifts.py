"""The rounds in which the data of clients changed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import final

from overheard.core.parties import COHORT, Party
from overheard.core.settings import RoundNumber
from overheard.core.true_facts.stated import refuse_others, refuse_repetition
from overheard.core.truth import Renaming, TrueFact


@final
@dataclass(frozen=True, slots=True)
class StatedShifts:
    """The rounds in which the data of a client changed, as truth.json states them."""

    party: str
    rounds: tuple[RoundNumber, ...]


@final
@dataclass(frozen=True, slots=True)
class Shifts(TrueFact):
    """By client, the rounds in which its data distribution changed, in order.

    New examples of the same distribution are no shift.
    """

    shifts: Mapping[Party, tuple[int, ...]]

    key = "shifts"
    form = tuple[StatedShifts, ...]
    how_to_get = (
        "the ground truth states no shifts: let the data of clients change (data.shifts in a "
        "plan, `shifts` in the truth of a recording), or ask another question"
    )

    @classmethod
    def from_json(cls, stated: tuple[StatedShifts, ...]) -> "Shifts":
        """Return the shifts that truth.json states."""
        names = [one.party for one in stated]
        refuse_others(cls.key, names)
        refuse_repetition(cls.key, names)
        for one in stated:
            refuse_repetition(
                f"shifts of {one.party}", [f"round {number}" for number in one.rounds]
            )
            if list(one.rounds) != sorted(one.rounds):
                raise ValueError(f"shifts of {one.party} has rounds that are not in order")
        return cls({Party(one.party): one.rounds for one in stated})

    def to_json(self) -> tuple[StatedShifts, ...]:
        """Return the rounds of each client."""
        return tuple(StatedShifts(party, rounds) for party, rounds in self.shifts.items())

    def shifts_of(self, target: Party) -> tuple[int, ...]:
        """Return in order the rounds in which the party's data shifted; any, for `COHORT`."""
        rounds = {
            number
            for party, numbers in self.shifts.items()
            if target in (party, COHORT)
            for number in numbers
        }
        return tuple(sorted(rounds))

    def clients(self) -> Collection[Party]:
        """Return the clients that it names."""
        return self.shifts.keys()

    def renamed(self, names: Renaming) -> "Shifts | None":
        """Return the shifts by the new names of clients, if they keep them over rounds."""
        return (
            replace(self, shifts=names.rename_parties(self.shifts))
            if names.keeps_names
            else None
        )
