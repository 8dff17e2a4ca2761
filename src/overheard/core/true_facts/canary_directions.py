"""Which clients are canaries, and the seeds of the directions that they send."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, final

from pydantic import Field

from overheard.core.parties import Party
from overheard.core.true_facts.stated import refuse_others
from overheard.core.truth import Renaming, TrueFact


@final
@dataclass(frozen=True, slots=True)
class CanaryDirections(TrueFact):
    """The clients that send a random direction in place of an update.

    Args:
        seeds: by client, the seed of `core.algorithm.canary_direction`.

    """

    seeds: Mapping[Party, int]

    key = "canary_clients"
    form = Mapping[str, Annotated[int, Field(ge=0, lt=2**63)]]
    how_to_get = (
        "the run has no canary clients: list the defense canary_clients in an arm, or use the "
        "mod of the recorder"
    )

    @classmethod
    def from_json(cls, stated: Mapping[str, int]) -> "CanaryDirections":
        """Return the canaries that truth.json states."""
        refuse_others(cls.key, stated)
        return cls({Party(one): seed for one, seed in stated.items()})

    def to_json(self) -> Mapping[Party, int]:
        """Return the seeds by client."""
        return self.seeds

    def clients(self) -> Collection[Party]:
        """Return the canaries."""
        return self.seeds.keys()

    def renamed(self, names: Renaming) -> "CanaryDirections | None":
        """Return the canaries by their new names; None if names last for one round."""
        renamed = [names.rename_parties({one: seed}) for one, seed in self.seeds.items()]
        if any(len(one) > 1 for one in renamed):
            return None
        return CanaryDirections({party: seed for one in renamed for party, seed in one.items()})
