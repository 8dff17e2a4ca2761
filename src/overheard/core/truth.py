"""The ground truth of a run: read by scorers, never by attacks."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Self, TypeVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Fact, Facts
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import COHORT, Party
from overheard.core.split import Rows

NO_SHARES: Mapping[tuple[int, Party], Float[Tensor, " classes"]] = MappingProxyType({})
NO_REDRAWN_COUNTS: Mapping[tuple[int, Party], Int[Tensor, "partitions classes"]] = (
    MappingProxyType({})
)

V = TypeVar("V")

ByRound = Mapping[tuple[int, Party], V]
"""What is held by (round, client)."""


class Renaming(ABC):
    """New names of the clients of a run; a client without a new name is dropped."""

    keeps_names: ClassVar[bool]
    """Whether a client has one name in all rounds, rather than one in each."""

    @abstractmethod
    def rename(self, held: Mapping[Party, V]) -> Mapping[Party, V]:
        """Return what is held by client under each of the client's new names."""

    @abstractmethod
    def rename_by_round(self, held: ByRound[V]) -> ByRound[V]:
        """Return what is held by (round, client) under the client's new name in the round."""


@final
@dataclass(frozen=True, slots=True)
class Without(Renaming):
    """Drops some clients; the others keep their names."""

    parties: Collection[Party]

    keeps_names = True

    def rename(self, held: Mapping[Party, V]) -> Mapping[Party, V]:
        """Return what the other clients hold."""
        return {party: one for party, one in held.items() if party not in self.parties}

    def rename_by_round(self, held: ByRound[V]) -> ByRound[V]:
        """Return what the other clients hold."""
        return {key: one for key, one in held.items() if key[1] not in self.parties}


class TrueFact(Fact):
    """A fact that is true of a run: see `core.true_facts`.

    A concrete fact is a final frozen dataclass. No attack can import it.
    """

    @abstractmethod
    def renamed(self, names: Renaming) -> Self | None:
        """Return the fact under new names of clients; None if it is no longer true of them."""


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

    def renamed(self, names: Renaming) -> "Partition":
        """Return the partition among the clients by their new names."""
        return replace(self, rows=names.rename_by_round(self.rows))


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """The ground truth of an audited run.

    Args:
        counts: label counts of each client, by (round, client); only with a reply in that
            round. They are counted before any defense changes the examples, since scores
            measure what the defense is meant to hide.
        accuracy: the accuracy of broadcast models on the test set, by round (0..1); without
            classes, the utility of the task (`core.task.UTILITIES`).
        has_label_counts: whether `counts` are known; the truth of a recorded run
            may contain only its canaries.
        drawn_from: the label shares that each client's examples were drawn from, by (round,
            client); empty = unknown, or label counts were exact.
        partition: which client held which examples; None unless the run was simulated in this
            process. It is never stored.
        redrawn_counts: as `counts`, but a row for each of many partitions drawn anew: what the
            clients might as well have held. Tests compare claims with them. Empty unless
            the run was simulated in this process; they are never stored.
        facts: all else that is known of the run.

    """

    counts: Mapping[tuple[int, Party], Int[Tensor, " classes"]]
    accuracy: Mapping[int, float]
    has_label_counts: bool = True
    drawn_from: Mapping[tuple[int, Party], Float[Tensor, " classes"]] = field(
        default_factory=lambda: NO_SHARES
    )
    partition: Partition | None = field(default=None, repr=False, compare=False)
    redrawn_counts: Mapping[tuple[int, Party], Int[Tensor, "partitions classes"]] = field(
        default_factory=lambda: NO_REDRAWN_COUNTS, repr=False, compare=False
    )
    facts: Facts[TrueFact] = field(default_factory=Facts)
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

    def having(self, fact: TrueFact) -> "GroundTruth":
        """Return the truth with this fact, in place of one of its kind."""
        return replace(self, facts=self.facts.having(fact))

    def without_parties(self, parties: Collection[Party]) -> "GroundTruth":
        """Return the truth without these parties, so that `COHORT` means the other clients."""
        return self.renamed(Without(parties))

    def renamed(self, names: Renaming) -> "GroundTruth":
        """Return the truth by the new names of clients, about those who have one."""
        facts = [one for fact in self.facts if (one := fact.renamed(names)) is not None]
        return replace(
            self,
            counts=names.rename_by_round(self.counts),
            redrawn_counts=names.rename_by_round(self.redrawn_counts),
            drawn_from=names.rename_by_round(self.drawn_from)
            if names.keeps_names
            else NO_SHARES,
            partition=None if self.partition is None else self.partition.renamed(names),
            facts=Facts(tuple(facts)),
        )


EMPTY_GROUND_TRUTH = GroundTruth({}, {})
"""The ground truth of a run of which only the transcript is known."""
