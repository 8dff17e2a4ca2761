"""What really was the case: read by scorers, never by attacks."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.parties import COHORT, Party
from overheard.core.split import Rows

NO_SHIFTS: Mapping[Party, tuple[int, ...]] = MappingProxyType({})
NO_USERS: Mapping[Party, str] = MappingProxyType({})
NO_MEMBERS: Mapping[Party, tuple[int, ...]] = MappingProxyType({})
NO_ATTRIBUTES: Mapping[str, Mapping[str, str]] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Who held which examples, before any defense changed or resampled them.

    Args:
        pool: examples of all clients.
        rows: of the pool, by (round, client). Only for clients that answered in that round.

    """

    pool: Examples
    rows: Mapping[tuple[int, Party], Rows]

    def renamed(self, names: Mapping[tuple[int, Party], tuple[int, Party]]) -> "Partition":
        """Return the same, of those who are named here alone and by their new names."""
        return Partition(self.pool, {new: self.rows[old] for old, new in names.items()})


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """What the audited run knows of itself.

    Args:
        counts: how many examples of each label a client held, by (round, client), before any
            defense changed or resampled them: what a defense is to hide is the truth that an
            attack is held against. Only for clients that answered in that round.
        accuracy: of the global model on the test set at broadcasts, by round (0..1).
        shifts: by client, the rounds in which what it holds changed in kind, in order: from
            each on it trained on data of another composition or look. An exchange for fresh
            examples of the same kind is none.
        users: who stands behind each client that is one person.
        attributes: values of sensitive attributes, by attribute and user.
        members: by client, the places of the records in question that it trains on.
        set_aside: places of records in question that count as neither trained on nor left out:
            those of observers, who know their own, and those of whom nobody tells.
        canaries: which records these are places among, as `data.canaries` tells lists of them
            apart; "" = untold.
        are_counts_told: whether `counts` and `shifts` say anything: who recorded a run may know
            no more than which canaries were put in.
        partition: who held which examples; None unless the run was simulated just now. No file
            holds it.

    """

    counts: Mapping[tuple[int, Party], Int[Tensor, " classes"]]
    accuracy: Mapping[int, float]
    shifts: Mapping[Party, tuple[int, ...]] = field(default_factory=lambda: NO_SHIFTS)
    users: Mapping[Party, str] = field(default_factory=lambda: NO_USERS)
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: NO_ATTRIBUTES)
    members: Mapping[Party, tuple[int, ...]] = field(default_factory=lambda: NO_MEMBERS)
    set_aside: frozenset[int] = frozenset()
    canaries: str = ""
    are_counts_told: bool = True
    partition: Partition | None = field(default=None, repr=False, compare=False)
    # Looked up for each of many targets, as the messages of a `View` are.
    _rounds: Mapping[Party, frozenset[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort the rounds by who trained in them, once."""
        rounds = defaultdict[Party, set[int]](set)
        for number, who in self.counts:
            rounds[who].add(number)
        own = {who: frozenset(numbers) for who, numbers in rounds.items()}
        object.__setattr__(self, "_rounds", own)

    def label_counts(self, target: Party, rounds: Collection[int]) -> Int[Tensor, " classes"]:
        """Label counts of one party summed over these rounds; of all clients for `COHORT`.

        Raises:
            ValueError: if the party trained in none of them.
            NeedsError: if no counts are told at all.

        """
        if not self.are_counts_told:
            raise NeedsError("the truth does not say how many examples of each label are held")
        parties = tuple(self._rounds) if target == COHORT else (target,)
        held = [
            self.counts[number, who]
            for who in parties
            for number in sorted(self._rounds.get(who, frozenset()).intersection(rounds))
        ]
        if not held:
            raise ValueError(f"{target} trained in none of the rounds {sorted(rounds)}")
        total = held[0].clone()
        for counts in held[1:]:
            total += counts
        return total

    def examples_of(self, target: Party, rounds: Collection[int]) -> Examples:
        """Examples that a party held in some of these rounds, once each; anyone, for `COHORT`.

        Raises:
            NeedsError: if the run was not simulated, so that nobody knows them.

        """
        if self.partition is None:
            raise NeedsError(
                "only the partition of a simulated run says which examples are held: simulate "
                "the run, or ask another question"
            )
        rows = [
            held
            for (number, who), held in self.partition.rows.items()
            if number in rounds and target in (who, COHORT)
        ]
        together = torch.unique(torch.cat(rows)) if rows else torch.arange(0)
        return self.partition.pool.take(together)

    def rounds_of(self, target: Party) -> frozenset[int]:
        """The rounds in which the party trained; in which anyone did, for `COHORT`."""
        if target == COHORT:
            return frozenset[int]().union(*self._rounds.values())
        return self._rounds.get(target, frozenset())

    def without(self, parties: Collection[Party]) -> "GroundTruth":
        """The truth about all others: so `COHORT` is the rest, for those who observe."""
        return replace(
            self,
            counts={p: held for p, held in self.counts.items() if p[1] not in parties},
            shifts={who: rounds for who, rounds in self.shifts.items() if who not in parties},
            users={who: user for who, user in self.users.items() if who not in parties},
            members={who: own for who, own in self.members.items() if who not in parties},
            set_aside=self.set_aside.union(*(self.members.get(who, ()) for who in parties)),
            partition=None
            if self.partition is None
            else self.partition.renamed(
                {held: held for held in self.partition.rows if held[1] not in parties}
            ),
        )

    def members_of(self, target: Party) -> tuple[int, ...]:
        """Which of the records in question the party trains on; anyone, for `COHORT`."""
        if target != COHORT:
            return self.members.get(target, ())
        return tuple(sorted({place for own in self.members.values() for place in own}))

    def shifts_of(self, target: Party) -> tuple[int, ...]:
        """The rounds in which the party's data shifted; anyone's, for `COHORT`; in order."""
        rounds = {n for who, own in self.shifts.items() if target in (who, COHORT) for n in own}
        return tuple(sorted(rounds))


NO_TRUTH = GroundTruth({}, {})
"""Of a run of which nothing is known but what was said."""


def true_user(truth: GroundTruth, target: Party) -> str:
    """Who a target is.

    Raises:
        NeedsError: if the truth does not say.

    """
    if target not in truth.users:
        raise NeedsError(
            f"who {target} is, the ground truth does not say: give the run's clients users "
            "(data.people in a plan, `users` in the truth of a recording), or ask another "
            "question"
        )
    return truth.users[target]
