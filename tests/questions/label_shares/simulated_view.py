"""A server's view of planted label shares over several rounds."""

from collections.abc import Sequence

from overheard.core.messages import Aggregate, Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.core.view import View, mean_update
from overheard.learning.initialization import initial_weights
from overheard.testing.planted_labels import SKEWED, build, train_updates


def simulate_view(
    cohorts: Sequence[Sequence[int]], *, with_sizes: bool = True, aggregated: bool = False
) -> View:
    """Simulate rounds of FedAvg with the `SKEWED` clients, and return the server's view.

    Args:
        cohorts: numbers of the clients that reply, by round.
        with_sizes: whether updates include the number of examples.
        aggregated: whether the server reads only the mean of a round's updates.

    """
    messages = []
    start = dict(initial_weights(build, Seed(3)))
    server = frozenset({SERVER})
    for number, cohort in enumerate(cohorts):
        clients = [client(place) for place in cohort]
        messages.append(Message(number, SERVER, frozenset(clients), Broadcast(start)))
        deltas = train_updates(start, SKEWED, number)
        updates = [Update(deltas[n], sum(SKEWED[n]) if with_sizes else None) for n in cohort]
        mean = mean_update(updates)
        if aggregated:
            aggregate = Aggregate(mean.delta, frozenset(clients), mean.examples)
            messages.append(Message(number, SERVER, server, aggregate))
        else:
            messages += [
                Message(number, sender, server, update)
                for sender, update in zip(clients, updates, strict=True)
            ]
        start = {name: weight + mean.delta[name] for name, weight in start.items()}
    return View(server, tuple(messages))
