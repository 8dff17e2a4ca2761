"""Which candidate records each client trains on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from overheard.core.parties import COHORT, Party
from overheard.core.truth import Renaming, TrueFact


@final
@dataclass(frozen=True, slots=True)
class RecordOwners(TrueFact):
    """Which candidate records each client trains on.

    Args:
        members: by client, the indices of its candidate records.
        excluded: indices of candidate records that count as neither members nor non-members:
            those of observers, and those of unknown membership.
        digest: digest of the list of candidate records; "" = unknown.

    """

    members: Mapping[Party, tuple[int, ...]]
    excluded: frozenset[int] = frozenset()
    digest: str = ""

    how_to_get = (
        "the ground truth does not state which records clients trained on: draw candidate "
        "records (data.candidates in a plan, `members` in the truth of a recording), or ask "
        "another question"
    )

    def members_of(self, target: Party) -> tuple[int, ...]:
        """Return indices of the records a party trains on; those of any client for `COHORT`."""
        if target != COHORT:
            return self.members.get(target, ())
        return tuple(sorted({index for places in self.members.values() for index in places}))

    def renamed(self, names: Renaming) -> "RecordOwners | None":
        """Return the owners by their new names; records of dropped clients are excluded."""
        if not names.keeps_names:
            return None
        members = names.rename_parties(self.members)
        dropped = [places for party, places in self.members.items() if party not in members]
        return replace(self, members=members, excluded=self.excluded.union(*dropped))
