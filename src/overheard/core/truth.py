"""The ground truth of a run: read by scorers, never by attacks."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar, final

import torch

from overheard.core.errors import UnstatedTruthError
from overheard.core.examples import Examples
from overheard.core.facts import Fact, Facts
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import COHORT, Party
from overheard.core.split import Rows

V = TypeVar("V")

ByRound = Mapping[tuple[int, Party], V]
"""What is held by (round, client)."""


class Renaming(ABC):
    """New names of the clients of a run; a client without a new name is dropped."""

    keeps_names: ClassVar[bool]
    """Whether a client has one name in all rounds, rather than one in each."""

    @abstractmethod
    def rename_parties(self, held: Mapping[Party, V]) -> Mapping[Party, V]:
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

    def rename_parties(self, held: Mapping[Party, V]) -> Mapping[Party, V]:
        """Return what the other clients hold."""
        return {party: one for party, one in held.items() if party not in self.parties}

    def rename_by_round(self, held: ByRound[V]) -> ByRound[V]:
        """Return what the other clients hold."""
        return {key: one for key, one in held.items() if key[1] not in self.parties}


class TrueFact(Fact):
    """A fact that is true of a run: see `core.true_facts`.

    A concrete fact is a final frozen dataclass, and a question names it in what it `reads`. No
    attack can import it.
    """

    key: ClassVar[str]
    """Its key in truth.json."""
    form: ClassVar[Any]  # Any: a type of its own, such as Mapping[str, str]
    """What truth.json states under the key, as a type that pydantic reads."""

    @classmethod
    @abstractmethod
    def from_json(cls, stated: Any) -> Self:
        """Return the fact that truth.json states in the form of this kind.

        Raises:
            ValueError: if it is impossible.

        """

    @abstractmethod
    def to_json(self) -> Any:
        """Return what truth.json states."""

    def clients(self) -> Collection[Party]:
        """Return the clients that must be in the run; by default none."""
        return ()

    def refuse_contradiction(self, facts: Facts["TrueFact"]) -> None:
        """Refuse what another fact contradicts; by default nothing.

        Raises:
            ValueError: if there is a contradiction.

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
    rows: ByRound[Rows]
    token_words: TokenWords | None = None

    def renamed(self, names: Renaming) -> "Partition":
        """Return the partition among the clients by their new names."""
        return replace(self, rows=names.rename_by_round(self.rows))


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """The ground truth of an audited run.

    Args:
        facts: what is true of its clients.
        accuracy: the accuracy of broadcast models on the test set, by round (0..1); without
            classes, the utility of the task (`core.task.UTILITIES`).
        partition: which client held which examples; None unless the run was simulated in this
            process. It is never stored.

    """

    facts: Facts[TrueFact] = field(default_factory=Facts)
    accuracy: Mapping[int, float] = field(default_factory=dict)
    partition: Partition | None = field(default=None, repr=False, compare=False)

    def examples_of(self, target: Party, rounds: Collection[int]) -> Examples:
        """Return the distinct examples that a party held in these rounds; all for `COHORT`.

        Raises:
            UnstatedTruthError: if the run was not simulated, so that its examples are unknown.

        """
        if self.partition is None:
            raise UnstatedTruthError(
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

    def having(self, fact: TrueFact) -> "GroundTruth":
        """Return the truth with this fact, in place of one of its kind."""
        return replace(self, facts=self.facts.having(fact))

    def without_parties(self, parties: Collection[Party]) -> "GroundTruth":
        """Return the truth without these parties, so that `COHORT` means the other clients."""
        return self.renamed(Without(parties))

    def renamed(self, names: Renaming) -> "GroundTruth":
        """Return the truth by the new names of clients, about those who have one."""
        facts = [one for fact in self.facts if (one := fact.renamed(names)) is not None]
        partition = None if self.partition is None else self.partition.renamed(names)
        return replace(self, facts=Facts(*facts), partition=partition)
