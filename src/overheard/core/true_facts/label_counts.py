"""The label counts of clients, and the label shares that their examples are drawn from."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.parties import COHORT, Party, client
from overheard.core.truth import ByRound, Renaming, TrueFact

NOT_REDRAWN: ByRound[Int[Tensor, "partitions classes"]] = MappingProxyType({})


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

    how_to_get = "the ground truth has no label counts: ask another question, or add the counts"

    def __post_init__(self) -> None:
        """Index the rounds by the clients that trained in them."""
        rounds = defaultdict[Party, set[int]](set)
        for number, party in self.counts:
            rounds[party].add(number)
        by_party = {party: frozenset(numbers) for party, numbers in rounds.items()}
        object.__setattr__(self, "_rounds", by_party)

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

    def renamed(self, names: Renaming) -> "DrawnShares | None":
        """Return the shares by the new names of clients, if they keep them over rounds."""
        return (
            replace(self, shares=names.rename_parties(self.shares))
            if names.keeps_names
            else None
        )
