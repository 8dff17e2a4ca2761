"""What is true of the sizes of clients; no attack may import it."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.parties import Party
from overheard.core.settings import ExampleCount
from overheard.core.true_facts.stated import refuse_others
from overheard.core.truth import ByRound, Renaming, TrueFact


@final
@dataclass(frozen=True, slots=True)
class ClientSizes(TrueFact):
    """The number of examples of each client, by (round, client)."""

    sizes: ByRound[int]

    key = "client_sizes"
    form = Mapping[str, tuple[ExampleCount, ...]]
    how_to_get = (
        "the ground truth has no sizes of clients: add `client_sizes` to truth.json, with the "
        "number of examples in each round by client"
    )

    @classmethod
    def from_json(cls, stated: Mapping[str, tuple[int, ...]]) -> "ClientSizes":
        """Return the sizes that truth.json states, by client and in the order of rounds."""
        refuse_others(cls.key, stated)
        return cls(
            {
                (number, Party(name)): size
                for name, sizes in stated.items()
                for number, size in enumerate(sizes)
            }
        )

    def to_json(self) -> Mapping[Party, list[int]]:
        """Return the sizes by client, in the order of rounds."""
        stated = defaultdict[Party, list[int]](list)
        for _, party in sorted(self.sizes):
            stated[party].append(self.sizes[len(stated[party]), party])
        return stated

    def clients(self) -> Collection[Party]:
        """Return the clients that it names."""
        return {party for _, party in self.sizes}

    def renamed(self, names: Renaming) -> "ClientSizes":
        """Return the sizes of clients by their new names."""
        return ClientSizes(names.rename_by_round(self.sizes))
