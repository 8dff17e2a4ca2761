"""Which clients took part in which round, as the messages of a run show."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.messages import Aggregate, DistilledSet, Message, Update
from overheard.core.parties import COHORT, SERVER, Party, is_shadow_device


@final
@dataclass(frozen=True, slots=True)
class Contributors:
    """The clients that took part in each round, without those that observe.

    Args:
        by_round: by round, the clients whose update was sent or aggregated. A round that is
            not named, as where only global models were recorded, may have had any.
        observers: the observing parties. A claim about the cohort is about the others.

    """

    by_round: Mapping[int, frozenset[Party]]
    observers: frozenset[Party] = frozenset()

    def rounds_of(self, target: Party, rounds: Collection[int]) -> frozenset[int]:
        """Return the rounds, of these, in which a target took part; for `COHORT`, others."""
        return frozenset(number for number in rounds if self._took_part(target, number))

    def _took_part(self, target: Party, number: int) -> bool:
        clients = self.by_round.get(number)
        if clients is None:
            return True
        return bool(clients - self.observers) if target == COHORT else target in clients


def find_contributors(
    messages: Iterable[Message], observers: Collection[Party]
) -> Contributors:
    """Return the clients that took part, by the messages of the whole run."""
    by_round = defaultdict[int, set[Party]](set)
    for message in messages:
        if isinstance(message.body, Update | DistilledSet):
            by_round[message.round].add(message.sender)
        elif isinstance(message.body, Aggregate) and message.body.cohort:
            by_round[message.round].update(message.body.cohort)
    return Contributors(
        {
            number: frozenset(
                one for one in parties if one != SERVER and not is_shadow_device(one)
            )
            for number, parties in by_round.items()
        },
        frozenset(observers),
    )
