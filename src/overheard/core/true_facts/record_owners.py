"""Which candidate records each client trains on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Self, final

from pydantic import Field

from overheard.core.parties import COHORT, Party
from overheard.core.settings import RecordIndex
from overheard.core.true_facts.stated import MAX_NAME_LENGTH, refuse_others, refuse_repetition
from overheard.core.truth import Renaming, TrueFact


@final
@dataclass(frozen=True, slots=True)
class RecordOwners(TrueFact):
    """Which candidate records each client trains on.

    Args:
        members: by client, the indices of its candidate records.
        excluded: indices of candidate records that count as neither members nor non-members:
            those of observers, and those of unknown membership.

    """

    members: Mapping[Party, tuple[int, ...]]
    excluded: frozenset[int] = frozenset()

    key = "members"
    form = Mapping[str, tuple[RecordIndex, ...]]
    how_to_get = (
        "the ground truth does not state which records clients trained on: draw candidate "
        "records (data.candidates in a plan, `members` in the truth of a recording), or ask "
        "another question"
    )

    @classmethod
    def from_json(cls, stated: Mapping[str, tuple[int, ...]]) -> "RecordOwners":
        """Return the owners that truth.json states."""
        refuse_others(cls.key, stated)
        for party, indices in stated.items():
            if len({*indices}) < len(indices):
                raise ValueError(
                    f"members of {party} must be distinct indices of records, from 0"
                )
        return cls({Party(client): indices for client, indices in stated.items()})

    def to_json(self) -> Mapping[Party, tuple[int, ...]]:
        """Return the indices of records by client."""
        return self.members

    def members_of(self, target: Party) -> tuple[int, ...]:
        """Return indices of the records a party trains on; those of any client for `COHORT`."""
        if target != COHORT:
            return self.members.get(target, ())
        return tuple(sorted({index for places in self.members.values() for index in places}))

    def clients(self) -> Collection[Party]:
        """Return the clients that it names."""
        return self.members.keys()

    def renamed(self, names: Renaming) -> "RecordOwners | None":
        """Return the owners by their new names; records of dropped clients are excluded.

        None if a client has several names, one for each round: a record has one owner.
        """
        renamed = [names.rename_parties({one: held}) for one, held in self.members.items()]
        if any(len(one) > 1 for one in renamed):
            return None
        dropped = [
            held for held, one in zip(self.members.values(), renamed, strict=True) if not one
        ]
        members = {party: held for one in renamed for party, held in one.items()}
        return replace(self, members=members, excluded=self.excluded.union(*dropped))


@final
@dataclass(frozen=True, slots=True)
class OfferedCanaries(TrueFact):
    """Which canaries were offered to each client, which a fair coin then gave to it or not.

    Args:
        offered: by client, the indices of its canaries, given or held out.

    """

    offered: Mapping[Party, tuple[int, ...]]

    key = "offered"
    form = Mapping[str, tuple[RecordIndex, ...]]
    how_to_get = (
        "the ground truth does not state which canaries were offered to each client: take the "
        "truth.json that `overheard canaries` wrote"
    )

    @classmethod
    def from_json(cls, stated: Mapping[str, tuple[int, ...]]) -> "OfferedCanaries":
        """Return what truth.json states."""
        refuse_others(cls.key, stated)
        refuse_repetition(cls.key, (str(one) for held in stated.values() for one in held))
        return cls({Party(client): indices for client, indices in stated.items()})

    def to_json(self) -> Mapping[Party, tuple[int, ...]]:
        """Return the indices of canaries by client."""
        return self.offered

    def clients(self) -> Collection[Party]:
        """Return the clients that it names."""
        return self.offered.keys()

    def renamed(self, names: Renaming) -> "OfferedCanaries | None":
        """Return the same by the new names; None if a client has several names."""
        renamed = [names.rename_parties({one: held}) for one, held in self.offered.items()]
        if any(len(one) > 1 for one in renamed):
            return None
        return OfferedCanaries({party: held for one in renamed for party, held in one.items()})


@dataclass(frozen=True, slots=True)
class _Digest(TrueFact):
    digest: str

    form = Annotated[str, Field(max_length=MAX_NAME_LENGTH, pattern="^[0-9a-f]*$")]

    @classmethod
    def from_json(cls, stated: str) -> Self:
        """Return the digest that truth.json states."""
        return cls(stated)

    def to_json(self) -> str:
        """Return the digest."""
        return self.digest

    def renamed(self, names: Renaming) -> Self:
        """Return the digest as it is: it depends on no client."""
        return self


@final
@dataclass(frozen=True, slots=True)
class BoundDigest(_Digest):
    """The digest of how epsilon is bounded, as stated when the canaries were drawn."""

    key = "bound"
    how_to_get = (
        "the ground truth does not state how epsilon is bounded: take the truth.json that "
        "`overheard canaries` wrote"
    )


@final
@dataclass(frozen=True, slots=True)
class RecordsDigest(_Digest):
    """The digest of the list of candidate records, which tells whether a plan has the same."""

    key = "canaries"
    how_to_get = (
        "the ground truth has no digest of the candidate records: take the truth.json that "
        "`overheard canaries` wrote"
    )
