"""Which clients are in which sum: the matrix of participation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from overheard.core.messages import Aggregate, Message
from overheard.core.parties import Party, party_sort_key


@final
@dataclass(frozen=True, slots=True, eq=False)
class Participation:
    """Which clients are in the sum of which round.

    Args:
        clients: the clients that are in any sum, in order.
        rounds: the rounds with a sum, in order.
        took_part: (rounds, clients), whether a client is in the sum of a round.
        totals: for each round, the number of examples of all its clients together; None = it
            is hidden.

    """

    clients: tuple[Party, ...]
    rounds: tuple[int, ...]
    took_part: NDArray[np.bool_]
    totals: tuple[int | None, ...]

    @property
    def cohort_sizes(self) -> tuple[int, ...]:
        """Return the number of clients in each sum."""
        return tuple(int(count) for count in self.took_part.sum(axis=1))


def find_participation(
    messages: Iterable[Message], observers: Sequence[Party] = ()
) -> Participation | None:
    """Return which clients are in which sum, by the aggregates of a run.

    Observers know their own updates and subtract them, so they are left out.

    Returns:
        The participation; None if the run has no aggregates, or one of them names no client: of
        a part of the sums, less would seem to follow than of all.

    """
    own, cohorts, totals = frozenset(observers), {}, {}
    for message in messages:
        body = message.body
        if isinstance(body, Aggregate) and not body.cohort:
            return None
        if isinstance(body, Aggregate) and body.cohort - own:
            cohorts[message.round] = body.cohort - own
            # The total of a cohort with an observer is not that of the others.
            totals[message.round] = None if body.cohort & own else body.examples
    return make_participation(cohorts, totals)


def make_participation(
    cohorts: Mapping[int, frozenset[Party]], totals: Mapping[int, int | None]
) -> Participation | None:
    """Return the participation of cohorts; None = there are none.

    Args:
        cohorts: by round, the clients of the sum; at least one.
        totals: by round, the number of their examples; None = it is hidden.

    """
    if not cohorts:
        return None
    rounds = tuple(sorted(cohorts))
    clients = tuple(sorted(frozenset().union(*cohorts.values()), key=party_sort_key))
    place = {party: number for number, party in enumerate(clients)}
    took_part = np.zeros((len(rounds), len(clients)), dtype=bool)
    for row, number in enumerate(rounds):
        took_part[row, [place[party] for party in cohorts[number]]] = True
    return Participation(clients, rounds, took_part, tuple(totals[number] for number in rounds))
