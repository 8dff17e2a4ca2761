"""The label counts of clients, and the label shares that their examples are drawn from."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, final

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.facts import Facts
from overheard.core.parties import COHORT, Party, client
from overheard.core.settings import MAX_EXAMPLES, ExampleCount, RoundNumber, Share
from overheard.core.true_facts.stated import refuse_others, refuse_repetition
from overheard.core.truth import ByRound, Renaming, TrueFact

SHARES_TOLERANCE = 1e-3
"""How far the sum of a party's label shares may be from 1, as they may be rounded by hand."""

NOT_REDRAWN: ByRound[Int[Tensor, "partitions classes"]] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class StatedCounts:
    """The label counts of a client in a round, as truth.json states them."""

    round: RoundNumber
    party: str
    labels: Annotated[tuple[ExampleCount, ...], Field(min_length=1)]


@final
@dataclass(frozen=True, slots=True)
class StatedShares:
    """The label shares that a client's examples are drawn from, from a round on."""

    party: str
    round: RoundNumber
    shares: tuple[Share, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class LabelCounts(TrueFact):
    """The label counts of each client.

    They are counted before any defense changes the examples, since scores measure what the
    defense is meant to hide.

    Args:
        counts: by (round, client); only with a reply in that round.
        redrawn: as `counts`, but a row for each of many partitions drawn anew: what the clients
            might as well have held. Tests compare claims with them. Empty unless the run was
            simulated in this process; they are never stored.

    """

    counts: ByRound[Int[Tensor, " classes"]]
    redrawn: ByRound[Int[Tensor, "partitions classes"]] = field(
        default_factory=lambda: NOT_REDRAWN, repr=False
    )
    # Indexed once, as it is looked up for each of many targets.
    _rounds: Mapping[Party, frozenset[int]] = field(init=False, repr=False)

    key = "counts"
    form = tuple[StatedCounts, ...]
    how_to_get = "the ground truth has no label counts: ask another question, or add the counts"

    def __post_init__(self) -> None:
        """Index the rounds by the clients that trained in them."""
        rounds = defaultdict[Party, set[int]](set)
        for number, party in self.counts:
            rounds[party].add(number)
        by_party = {party: frozenset(numbers) for party, numbers in rounds.items()}
        object.__setattr__(self, "_rounds", by_party)

    @classmethod
    def from_json(cls, stated: tuple[StatedCounts, ...]) -> "LabelCounts":
        """Return the counts that truth.json states."""
        refuse_repetition(cls.key, [f"round {one.round} of {one.party}" for one in stated])
        refuse_others(cls.key, [one.party for one in stated])
        for one in stated:
            if len(one.labels) != len(stated[0].labels):
                raise ValueError(
                    f"counts of {one.party} in round {one.round} are of {len(one.labels)} "
                    f"labels, but the first ones are of {len(stated[0].labels)}"
                )
            if sum(one.labels) >= MAX_EXAMPLES:
                raise ValueError(
                    f"counts of {one.party} in round {one.round} sum to {sum(one.labels)}, but "
                    f"at most {MAX_EXAMPLES - 1} examples are possible"
                )
        return cls(
            {
                (one.round, Party(one.party)): torch.tensor(one.labels, dtype=torch.int64)
                for one in stated
            }
        )

    def to_json(self) -> tuple[StatedCounts, ...]:
        """Return the counts of each client in each round."""
        return tuple(
            StatedCounts(number, party, tuple(counts.tolist()))
            for (number, party), counts in self.counts.items()
        )

    def rounds_of(self, target: Party) -> frozenset[int]:
        """Return the rounds in which the party trained; any client, for `COHORT`."""
        if target == COHORT:
            return frozenset[int]().union(*self._rounds.values())
        return self._rounds.get(target, frozenset())

    def counts_of(self, target: Party, rounds: Collection[int]) -> Int[Tensor, " classes"]:
        """Return a party's label counts, summed over these rounds; all clients' for `COHORT`.

        Raises:
            NeedsError: if they are of none of the rounds.

        """
        by_round = [
            self.counts[number, party]
            for party in self._parties(target)
            for number in sorted(self.rounds_of(party).intersection(rounds))
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

    def expected_counts_of(
        self, target: Party, rounds: Collection[int], drawn: "DrawnShares | None"
    ) -> Float[Tensor, " classes"]:
        """Return the label counts that a party's examples have on average over their draws.

        These are the sizes times the label shares that examples were drawn from, summed over
        the rounds; the label counts themselves where nothing was drawn. `COHORT` means all.

        Raises:
            NeedsError: if label counts are of none of the rounds.

        """
        total = self.counts_of(target, rounds).double()
        for party in self._parties(target):
            for number in self.rounds_of(party).intersection(rounds):
                shares = None if drawn is None else drawn.shares_of(party, number)
                if shares is not None:
                    counts = self.counts[number, party].double()
                    total += shares * counts.sum() - counts
        return total

    def redrawn_counts_of(
        self, target: Party, rounds: Collection[int]
    ) -> Int[Tensor, "partitions classes"] | None:
        """Return what `counts_of` would be in each partition drawn anew; None = none."""
        counts = [
            held
            for (number, party), held in self.redrawn.items()
            if number in rounds and target in (party, COHORT)
        ]
        return torch.stack(counts).sum(0) if counts else None

    def renamed(self, names: Renaming) -> "LabelCounts":
        """Return the counts of clients by their new names."""
        return LabelCounts(
            names.rename_by_round(self.counts), names.rename_by_round(self.redrawn)
        )

    def _parties(self, target: Party) -> tuple[Party, ...]:
        return tuple(self._rounds) if target == COHORT else (target,)


@final
@dataclass(frozen=True, slots=True, eq=False)
class DrawnShares(TrueFact):
    """The label shares that a client's examples are drawn from.

    Args:
        shares: by client and round; they hold from the round on until the next stated one.

    """

    shares: Mapping[Party, Mapping[int, Float[Tensor, " classes"]]]

    key = "drawn_from"
    form = tuple[StatedShares, ...]
    how_to_get = (
        "the ground truth does not state the label shares that examples are drawn from: add "
        "them (`drawn_from` in the truth of a recording), or ask another question"
    )

    @classmethod
    def of_rounds(
        cls, by_round: Sequence[Sequence[Float[Tensor, " classes"]]]
    ) -> "DrawnShares":
        """Return the shares where they change, from those of each client in each round."""
        shares = {}
        for number, by_client in enumerate(zip(*by_round, strict=True)):
            shares[client(number)] = {
                place: one
                for place, one in enumerate(by_client)
                if place == 0 or not torch.equal(one, by_client[place - 1])
            }
        return cls(shares)

    @classmethod
    def from_json(cls, stated: tuple[StatedShares, ...]) -> "DrawnShares":
        """Return the shares that truth.json states."""
        refuse_repetition(cls.key, [f"round {one.round} of {one.party}" for one in stated])
        refuse_others(cls.key, [one.party for one in stated])
        shares = defaultdict[Party, dict[int, Tensor]](dict)
        for one in stated:
            total = math.fsum(one.shares)
            if abs(total - 1) > SHARES_TOLERANCE:
                raise ValueError(
                    f"drawn_from states shares of {one.party} in round {one.round} that sum to "
                    f"{total:.6g}: shares sum to 1"
                )
            shares[Party(one.party)][one.round] = torch.tensor(one.shares, dtype=torch.float64)
        return cls(shares)

    def to_json(self) -> tuple[StatedShares, ...]:
        """Return the shares of each client where they change."""
        return tuple(
            StatedShares(party, number, tuple(stated[number].tolist()))
            for party, stated in self.shares.items()
            for number in sorted(stated)
        )

    def refuse_contradiction(self, facts: Facts[TrueFact]) -> None:
        """Refuse shares that no label counts are drawn from.

        Raises:
            ValueError: if there are some.

        """
        counts = facts.get(LabelCounts) or LabelCounts({})
        for party, stated in self.shares.items():
            last = max(counts.rounds_of(party), default=-1)
            for number, shares in stated.items():
                if number > last:
                    raise ValueError(
                        f"drawn_from states shares of {party} in round {number}, but there are "
                        "no label counts that they apply to"
                    )
                if len(shares) != len(counts.counts[last, party]):
                    raise ValueError(f"drawn_from needs one share per label, for {party}")

    def applying_to(self, counts: LabelCounts) -> "DrawnShares":
        """Return the shares of clients up to the last round with label counts of each."""
        shares = {
            party: {one: stated[one] for one in stated if one <= max(counts.rounds_of(party))}
            for party, stated in self.shares.items()
            if counts.rounds_of(party)
        }
        return DrawnShares(shares)

    def shares_of(self, party: Party, number: int) -> Float[Tensor, " classes"] | None:
        """Return the shares of a client in a round; None if unknown."""
        stated = self.shares.get(party, {})
        first = max((one for one in stated if one <= number), default=None)
        return None if first is None else stated[first]

    def clients(self) -> Collection[Party]:
        """Return the clients that it names."""
        return self.shares.keys()

    def renamed(self, names: Renaming) -> "DrawnShares | None":
        """Return the shares by the new names of clients, if they keep them over rounds."""
        return (
            replace(self, shares=names.rename_parties(self.shares))
            if names.keeps_names
            else None
        )
