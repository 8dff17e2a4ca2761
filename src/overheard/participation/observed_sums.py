"""The sums of clients' updates that an observer reads, and who is in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float
from scipy.special import chdtrc

from overheard.core.errors import NeedsError
from overheard.core.messages import Aggregate, Update, Weights
from overheard.core.parties import COHORT, Party, is_client, party_sort_key
from overheard.core.view import View
from overheard.participation.example_counts import solve_example_counts
from overheard.participation.participation import find_participation
from overheard.statistics.evenly_spaced import select_evenly_spaced


@final
@dataclass(frozen=True, slots=True, eq=False)
class ObservedSums:
    """The sums that an observer reads; a single update is a sum of one client.

    Args:
        clients: the clients that are in any sum, in order.
        rounds: the round of each sum.
        senders: the sender of each sum: `COHORT`, or the client of a single update.
        deltas: the mean update of each sum, weighted by numbers of examples.
        weights: (sums, clients), the weight of each client in the mean; each row adds to 1.
        sizes: the number of examples of each client; None = not all follow, and weights are
            equal.

    """

    clients: tuple[Party, ...]
    rounds: tuple[int, ...]
    senders: tuple[Party, ...]
    deltas: tuple[Weights, ...]
    weights: Float[np.ndarray, "sums clients"]
    sizes: tuple[int, ...] | None

    @property
    def rank(self) -> int:
        """Return the number of linearly independent sums."""
        return int(np.linalg.matrix_rank(self.weights))

    @property
    def separable(self) -> int:
        """Return the number of clients that no other client is always together with."""
        _, counts = np.unique(self.weights > 0, axis=1, return_counts=True)
        return int((counts == 1).sum())

    def check_separable(self, attack: str) -> None:
        """Check that cohorts vary, so that something separates clients.

        Args:
            attack: the name of the attack that needs it.

        Raises:
            NeedsError: if each client is always together with the same others.

        """
        clients = len(self.clients)
        if clients > 1 and not self.separable:
            raise NeedsError(
                f"{attack} needs cohorts that vary: each client is always together with the "
                f"same others, and the sums have rank {self.rank} of {clients} clients"
            )

    def trend_p(self) -> float:
        """Return the p-value of a trend of who takes part, against cohorts drawn at random.

        Each client's participation is correlated with the number of the sum. Squared and
        standardised, these correlations sum to chi-squared if there is no trend.
        """
        took_part = (self.weights > 0).astype(float)
        time = np.arange(len(took_part)) - (len(took_part) - 1) / 2
        variance = took_part.var(axis=0)
        varies = variance > 0
        slopes = time @ (took_part - took_part.mean(axis=0))
        scores = slopes[varies] ** 2 / ((time @ time) * variance[varies])
        return float(chdtrc(max(1, int(varies.sum()) - 1), scores.sum()))


def find_sums(view: View, most_rounds: int) -> ObservedSums | None:
    """Return the sums that name their clients, in rounds with a broadcast; None = none.

    An aggregate is a sum of its cohort without the observers, whose own updates are subtracted.
    In a round without an aggregate each readable update is a sum of one client.

    Args:
        view: what the observer reads.
        most_rounds: at most this many rounds are used, evenly spaced.

    """
    members = _members(view)
    rounds = sorted(members.keys() & view.broadcasts().keys())
    chosen = select_evenly_spaced(rounds, most_rounds)
    cohorts = [(number, cohort) for number in chosen for cohort in members[number]]
    if not cohorts:
        return None
    clients = tuple(
        sorted(frozenset().union(*(cohort for _, cohort in cohorts)), key=party_sort_key)
    )
    known = _sizes(view, clients)
    weights = np.zeros((len(cohorts), len(clients)))
    place = {party: number for number, party in enumerate(clients)}
    for row, (_, cohort) in enumerate(cohorts):
        for party in cohort:
            weights[row, place[party]] = 1 if known is None else known[place[party]]
    weights /= weights.sum(axis=1, keepdims=True)
    aggregated = _aggregated(view)
    senders = tuple(
        COHORT if number in aggregated else next(iter(cohort)) for number, cohort in cohorts
    )
    updates = {sender: view.updates(sender) for sender in set(senders)}
    rounds_of = tuple(number for number, _ in cohorts)
    deltas = tuple(
        updates[sender][number].delta for sender, number in zip(senders, rounds_of, strict=True)
    )
    return ObservedSums(clients, rounds_of, senders, deltas, weights, known)


def _aggregated(view: View) -> frozenset[int]:
    return frozenset(
        message.round
        for message in view.messages
        if isinstance(message.body, Aggregate) and message.body.cohort - view.observers
    )


def _members(view: View) -> Mapping[int, Sequence[frozenset[Party]]]:
    """Return the clients of each sum, by round."""
    cohorts = {
        message.round: [message.body.cohort - view.observers]
        for message in view.messages
        if isinstance(message.body, Aggregate) and message.body.cohort - view.observers
    }
    singles = dict[int, list[frozenset[Party]]]()
    for message in view.messages:
        is_other = is_client(message.sender) and message.sender not in view.observers
        if isinstance(message.body, Update) and is_other and message.round not in cohorts:
            singles.setdefault(message.round, []).append(frozenset({message.sender}))
    return {**singles, **cohorts}


def _sizes(view: View, clients: Sequence[Party]) -> tuple[int, ...] | None:
    """Return the number of examples of each client, if all follow."""
    reported = dict[Party, int]()
    for message in view.messages:
        body = message.body
        if isinstance(body, Update) and body.examples and message.sender not in view.observers:
            reported.setdefault(message.sender, body.examples)
    participation = find_participation(view.messages, tuple(view.observers))
    if participation is not None and (solved := solve_example_counts(participation)):
        reported |= {
            participation.clients[number]: size
            for number, size in solved.by_client.items()
            if size > 0
        }
    if any(party not in reported for party in clients):
        return None
    return tuple(reported[party] for party in clients)
