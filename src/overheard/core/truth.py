"""The ground truth of a run: read by scorers, never by attacks."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.parties import COHORT, Party
from overheard.core.split import Rows
from overheard.core.task import TokenWords

NO_SHIFTS: Mapping[Party, tuple[int, ...]] = MappingProxyType({})
NO_SHARES: Mapping[tuple[int, Party], Float[Tensor, " classes"]] = MappingProxyType({})
NO_USERS: Mapping[Party, str] = MappingProxyType({})
NO_MEMBERS: Mapping[Party, tuple[int, ...]] = MappingProxyType({})
NO_ATTRIBUTES: Mapping[str, Mapping[str, str]] = MappingProxyType({})
NO_REDRAWN_COUNTS: Mapping[tuple[int, Party], Int[Tensor, "partitions classes"]] = (
    MappingProxyType({})
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Which client held which examples, before any defense changed or resampled them.

    Args:
        pool: examples of all clients.
        rows: rows of the pool, by (round, client); only for clients with a reply in that round.
        token_words: the words of the tokens; None if inputs are no texts.

    """

    pool: Examples
    rows: Mapping[tuple[int, Party], Rows]
    token_words: TokenWords | None = None

    def select_and_rename(
        self, names: Mapping[tuple[int, Party], tuple[int, Party]]
    ) -> "Partition":
        """Return the partition of only these (round, client) pairs, under their new names."""
        return replace(self, rows={new: self.rows[old] for old, new in names.items()})


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """The ground truth of an audited run.

    Args:
        counts: label counts of each client, by (round, client); only with a reply in that
            round. They are counted before any defense changes the examples, since scores
            measure what the defense is meant to hide.
        accuracy: the accuracy of broadcast models on the test set, by round (0..1); without
            classes, the utility of the task (`core.task.UTILITIES`).
        shifts: by client, the rounds in which its data distribution changed, in order. New
            examples of the same distribution are no shift.
        users: the user of each client that stands for one user.
        attributes: values of sensitive attributes, by attribute and user.
        members: by client, the indices of the candidate records that it trains on.
        excluded_records: indices of candidate records that count as neither members nor
            non-members: those of observers, and those of unknown membership.
        candidates_digest: digest of the list of candidate records; "" = unknown.
        has_label_counts: whether `counts` and `shifts` are known; the truth of a recorded run
            may contain only its canaries.
        drawn_from: the label shares that each client's examples were drawn from, by (round,
            client); empty = unknown, or label counts were exact.
        partition: which client held which examples; None unless the run was simulated in this
            process. It is never stored.
        redrawn_counts: as `counts`, but a row for each of many partitions drawn anew: what the
            clients might as well have held. Tests compare claims with them. Empty unless
            the run was simulated in this process; they are never stored.

    """

    counts: Mapping[tuple[int, Party], Int[Tensor, " classes"]]
    accuracy: Mapping[int, float]
    shifts: Mapping[Party, tuple[int, ...]] = field(default_factory=lambda: NO_SHIFTS)
    users: Mapping[Party, str] = field(default_factory=lambda: NO_USERS)
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: NO_ATTRIBUTES)
    members: Mapping[Party, tuple[int, ...]] = field(default_factory=lambda: NO_MEMBERS)
    excluded_records: frozenset[int] = frozenset()
    candidates_digest: str = ""
    has_label_counts: bool = True
    drawn_from: Mapping[tuple[int, Party], Float[Tensor, " classes"]] = field(
        default_factory=lambda: NO_SHARES
    )
    partition: Partition | None = field(default=None, repr=False, compare=False)
    redrawn_counts: Mapping[tuple[int, Party], Int[Tensor, "partitions classes"]] = field(
        default_factory=lambda: NO_REDRAWN_COUNTS, repr=False, compare=False
    )
    # Indexed once, as it is looked up for each of many targets.
    _rounds: Mapping[Party, frozenset[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the rounds by the clients that trained in them."""
        rounds = defaultdict[Party, set[int]](set)
        for number, party in self.counts:
            rounds[party].add(number)
        by_party = {party: frozenset(numbers) for party, numbers in rounds.items()}
        object.__setattr__(self, "_rounds", by_party)

    def label_counts(self, target: Party, rounds: Collection[int]) -> Int[Tensor, " classes"]:
        """Return a party's label counts, summed over these rounds; all clients' for `COHORT`.

        Raises:
            NeedsError: if label counts are unknown, or are of none of the rounds.

        """
        if not self.has_label_counts:
            raise NeedsError(
                "the ground truth has no label counts: ask another question, or add the counts"
            )
        parties = tuple(self._rounds) if target == COHORT else (target,)
        by_round = [
            self.counts[number, party]
            for party in parties
            for number in sorted(self._rounds.get(party, frozenset()).intersection(rounds))
        ]
        if not by_round:
            numbers = ", ".join(map(str, sorted(rounds)))
            where = f"round {numbers}" if len(rounds) == 1 else f"the rounds {numbers}"
            raise NeedsError(
                f"the ground truth has no label counts of {target} in {where}: add them"
            )
        total = by_round[0].clone()
        for counts in by_round[1:]:
            total += counts
        return total

    def redrawn_label_counts(
        self, target: Party, rounds: Collection[int]
    ) -> Int[Tensor, "partitions classes"] | None:
        """Return what `label_counts` would be in each partition drawn anew; None = none."""
        counts = [
            held
            for (number, party), held in self.redrawn_counts.items()
            if number in rounds and target in (party, COHORT)
        ]
        return torch.stack(counts).sum(0) if counts else None

    def expected_counts(
        self, target: Party, rounds: Collection[int]
    ) -> Float[Tensor, " classes"]:
        """Return the label counts that a party's examples have on average over their draws.

        These are the sizes times the label shares that examples were drawn from, summed over
        the rounds; the label counts themselves where nothing was drawn. `COHORT` means all.

        Raises:
            NeedsError: if label counts are unknown, or are of none of the rounds.

        """
        total = self.label_counts(target, rounds).double()
        for party in tuple(self._rounds) if target == COHORT else (target,):
            for number in self._rounds[party].intersection(rounds):
                shares = self.drawn_from.get((number, party))
                if shares is not None:
                    counts = self.counts[number, party].double()
                    total += shares * counts.sum() - counts
        return total

    def examples_of(self, target: Party, rounds: Collection[int]) -> Examples:
        """Return the distinct examples that a party held in these rounds; all for `COHORT`.

        Raises:
            NeedsError: if the run was not simulated, so that its examples are unknown.

        """
        if self.partition is None:
            raise NeedsError(
                "only a simulated run records which client held which examples: simulate the "
                "run, or ask another question"
            )
        rows = [
            held
            for (number, party), held in self.partition.rows.items()
            if number in rounds and target in (party, COHORT)
        ]
        distinct = torch.unique(torch.cat(rows)) if rows else torch.arange(0)
        return self.partition.pool.take(distinct)

    def rounds_of(self, target: Party) -> frozenset[int]:
        """Return the rounds in which the party trained; any client, for `COHORT`."""
        if target == COHORT:
            return frozenset[int]().union(*self._rounds.values())
        return self._rounds.get(target, frozenset())

    def without_parties(self, parties: Collection[Party]) -> "GroundTruth":
        """Return the truth without these parties, so that `COHORT` means the other clients."""
        return replace(
            self,
            counts={key: held for key, held in self.counts.items() if key[1] not in parties},
            redrawn_counts={
                key: held for key, held in self.redrawn_counts.items() if key[1] not in parties
            },
            shifts={
                party: rounds for party, rounds in self.shifts.items() if party not in parties
            },
            users={party: user for party, user in self.users.items() if party not in parties},
            members={
                party: indices
                for party, indices in self.members.items()
                if party not in parties
            },
            excluded_records=self.excluded_records.union(
                *(self.members.get(party, ()) for party in parties)
            ),
            drawn_from={
                key: shares for key, shares in self.drawn_from.items() if key[1] not in parties
            },
            partition=None
            if self.partition is None
            else self.partition.select_and_rename(
                {key: key for key in self.partition.rows if key[1] not in parties}
            ),
        )

    def members_of(self, target: Party) -> tuple[int, ...]:
        """Return indices of candidate records the party trains on; any client, for `COHORT`."""
        if target != COHORT:
            return self.members.get(target, ())
        return tuple(sorted({index for member in self.members.values() for index in member}))

    def shifts_of(self, target: Party) -> tuple[int, ...]:
        """Return in order the rounds in which the party's data shifted; any, for `COHORT`."""
        rounds = {
            number
            for party, numbers in self.shifts.items()
            if target in (party, COHORT)
            for number in numbers
        }
        return tuple(sorted(rounds))


EMPTY_GROUND_TRUTH = GroundTruth({}, {})
"""The ground truth of a run of which only the transcript is known."""


def true_user(truth: GroundTruth, target: Party) -> str:
    """Return the user that a target stands for.

    Raises:
        NeedsError: if it is unknown.

    """
    if target not in truth.users:
        raise NeedsError(
            f"the ground truth has no user for {target}: assign users to clients (data.people "
            "in a plan, `users` in the truth of a recording), or ask another question"
        )
    return truth.users[target]
