"""What broadcasts tell of the mean update of a round, under any algorithm."""

from collections.abc import Iterator
from dataclasses import replace

from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.algorithm.lazy_weights import LinearCombination
from overheard.core.messages import Aggregate, Broadcast, Message, Update, Weights
from overheard.core.parties import COHORT
from overheard.core.view import View

UNKNOWN_ALGORITHM = (
    "the mean update of a round: the server does not just add it to the global model, and the "
    "attacker does not know its algorithm"
)
"""Why an attacker without the recipe cannot compute the mean update."""

TOO_FEW_BROADCASTS = (
    "the mean update of a round: under this algorithm it takes the broadcasts of the round, of "
    "the round before and of the round after"
)
"""Why a round without such broadcasts is left out."""


def deduce_means(view: View, algorithm: Algorithm, *, is_known: bool) -> View:
    """Return the view with the mean updates that its observers can compute from broadcasts.

    `View.updates(COHORT)` takes the change of the global model for the mean update. That is
    right where the server adds the mean update, as in FedAvg at rate 1; then the view is
    returned as it is. Otherwise the mean update of each round is added as an `Aggregate`, if
    the observers know the algorithm and can invert its step. The change is then never taken for
    a mean update: rounds without one are left out.

    Args:
        view: what the observers read.
        algorithm: the algorithm of the run.
        is_known: whether the observers know it.

    """
    if algorithm.adds_mean:
        return view
    if not is_known or algorithm.hidden_mean:
        return replace(view, hidden_mean=algorithm.hidden_mean or UNKNOWN_ALGORITHM)
    messages = (*view.messages, *_deduced_aggregates(view, algorithm))
    return replace(view, messages=messages, hidden_mean=TOO_FEW_BROADCASTS)


def _deduced_aggregates(view: View, algorithm: Algorithm) -> Iterator[Message]:
    """Yield the mean update of each round for which the observers read nothing better."""
    starts = {
        message.round: message
        for message in (*view.messages, *view.closing_broadcasts)
        if isinstance(message.body, Broadcast)
    }
    answered = {
        message.round
        for message in view.messages
        if isinstance(message.body, Aggregate)
        or (isinstance(message.body, Update) and message.sender not in view.observers)
    }
    before: Weights | None = None
    is_before_known = True
    for number in range(max(starts, default=0)):
        if number not in starts or number + 1 not in starts:
            is_before_known = False
            continue
        start = starts[number]
        change = _change(start, starts[number + 1])
        # A round without any update leaves the server, and its memory, as they were.
        if _is_zero(change):
            continue
        is_readable = number not in answered and start.sender not in view.observers
        if is_before_known and is_readable:
            cohort = start.readers - {start.sender}
            mean = algorithm.mean_of_round(change, before)
            yield Message(number, COHORT, view.observers, Aggregate(mean, cohort))
        before, is_before_known = change, True


def _change(start: Message, end: Message) -> Weights:
    assert isinstance(start.body, Broadcast)
    assert isinstance(end.body, Broadcast)
    return LinearCombination((end.body.weights, start.body.weights), (1.0, -1.0))


def _is_zero(weights: Weights) -> bool:
    return not any(bool(weights[name].any()) for name in weights)
