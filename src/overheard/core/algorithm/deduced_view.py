"""What broadcasts tell of the mean update of a round, under any algorithm."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.algorithm.lazy_weights import LinearCombination
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    UnstoredMessage,
    Update,
    Weights,
)
from overheard.core.parties import COHORT, SERVER, Party, is_shadow_device
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

UNKNOWN_COHORTS = (
    "who took part in each round: add 'cohorts' to knows if the server announces it, or if it "
    "is public"
)
"""Why observers that compute mean updates cannot tell single clients apart."""

UNRECORDED_COHORTS = (
    "who took part in each round: 'cohorts' is in knows, but the run has no messages that say "
    "whose updates were averaged, as where only global models were recorded"
)
"""Why it does not help them that they know the cohorts."""

UNSTORED_UPDATES = (
    "sums without the observers' own updates: these are in each sum, and the recording does "
    "not store them, as where they are masked"
)
"""Why observers cannot tell what of a sum is of others."""

CORRECTED_UPDATES = (
    "sums of updates that differ as the data of clients do: the control variates of the "
    "algorithm correct each update towards the mean of all clients"
)
"""Why sums under such an algorithm are not read as sums of single clients."""

WHY_NO_SUMS = frozenset(
    {
        UNKNOWN_ALGORITHM,
        TOO_FEW_BROADCASTS,
        UNKNOWN_COHORTS,
        UNRECORDED_COHORTS,
        UNSTORED_UPDATES,
        CORRECTED_UPDATES,
    }
)
"""Why observers of broadcasts cannot compute mean updates, or whose they are."""


def find_cohorts(messages: Iterable[Message]) -> Mapping[int, frozenset[Party]]:
    """Return the parties whose updates were averaged in each round, as messages say.

    They are the cohort of the aggregate or, without one that names its cohort, the senders of
    updates, without shadow devices, whose updates nobody averages. A round is left out if no
    message says it: if a reply was not stored, which may be in the mean or not, or if distilled
    sets were sent, whose updates nobody averages either.

    Args:
        messages: those of the whole run.

    """
    named, senders = dict[int, frozenset[Party]](), defaultdict[int, set[Party]](set)
    unclear = set[int]()
    for message in messages:
        match message.body:
            case Aggregate(cohort=cohort) if cohort:
                named[message.round] = cohort
            case Update() if not is_shadow_device(message.sender):
                senders[message.round].add(message.sender)
            case DistilledSet():
                unclear.add(message.round)
            case UnstoredMessage() if message.sender != SERVER:
                unclear.add(message.round)
    sent = {
        number: frozenset(parties)
        for number, parties in senders.items()
        if number not in unclear
    }
    return {**sent, **named}


def deduce_means(
    view: View,
    algorithm: Algorithm,
    *,
    is_known: bool,
    cohorts: Mapping[int, frozenset[Party]] | None = None,
) -> View:
    """Return the view with the mean updates that its observers can compute from broadcasts.

    `View.updates(COHORT)` takes the change of the global model for the mean update. That is
    right where the server adds the mean update, as in FedAvg at rate 1. Otherwise the mean
    update of each round is added as an `Aggregate`, if the observers know the algorithm and can
    invert its step. The change is then never taken for a mean update: rounds without one are
    left out.

    Observers that know who took part get an `Aggregate` that names its cohort, whichever the
    algorithm. Numbers of examples stay hidden. Without that knowledge no aggregate names a
    client: its others have pseudonyms, as many as read the broadcast.

    Args:
        view: what the observers read.
        algorithm: the algorithm of the run.
        is_known: whether the observers know it.
        cohorts: by round, the parties whose updates were averaged (`find_cohorts`); None = the
            observers do not know.

    """
    if algorithm.hidden_mean:
        return replace(view, hidden_mean=algorithm.hidden_mean)
    view = replace(view, hidden_cohorts=_hidden_cohorts(view, cohorts))
    named = {} if view.hidden_cohorts else _without_unstored(view, cohorts or {})
    if not (algorithm.adds_mean or is_known):
        return replace(view, hidden_mean=UNKNOWN_ALGORITHM)
    deduced = _deduced_aggregates(view, algorithm, named)
    why = "" if algorithm.adds_mean else TOO_FEW_BROADCASTS
    return replace(view, messages=(*view.messages, *deduced), hidden_mean=why)


def _hidden_cohorts(view: View, cohorts: Mapping[int, frozenset[Party]] | None) -> str:
    """Return why changes of the model name no client; "" = they do, or none is read."""
    starts = _broadcasts(view)
    reads_change = any(number + 1 in starts for number in _unanswered_rounds(view, starts))
    if not reads_change:
        return ""
    if any(
        isinstance(start.body, Broadcast) and start.body.control is not None
        for start in starts.values()
    ):
        return CORRECTED_UPDATES
    if not cohorts:
        return UNKNOWN_COHORTS if cohorts is None else UNRECORDED_COHORTS
    return "" if _without_unstored(view, cohorts) else UNSTORED_UPDATES


def _without_unstored(
    view: View, cohorts: Mapping[int, frozenset[Party]]
) -> Mapping[int, frozenset[Party]]:
    """Return the cohorts of which the view has the updates of all observers in them.

    Of other sums the observers' own part cannot be subtracted.
    """
    stored = {
        (message.round, message.sender)
        for message in view.messages
        if isinstance(message.body, Update)
    }
    return {
        number: cohort
        for number, cohort in cohorts.items()
        if all((number, one) in stored for one in cohort & view.observers)
    }


def _deduced_aggregates(
    view: View, algorithm: Algorithm, cohorts: Mapping[int, frozenset[Party]]
) -> Iterator[Message]:
    """Yield the mean update of each round for which the observers read nothing better.

    If the server just adds it, `View.updates` finds it, so that only named cohorts add to it.
    Where some rounds have a named cohort, the others are left out: their pseudonyms would be
    taken for clients that are in no other sum.
    """
    starts = _broadcasts(view)
    unanswered = _unanswered_rounds(view, starts)
    before: Weights | None = None
    is_before_known = True
    for number in range(max(starts, default=0)):
        if number not in starts or number + 1 not in starts:
            is_before_known = False
            continue
        start, cohort = starts[number], cohorts.get(number)
        change = _change(start, starts[number + 1])
        if algorithm.adds_mean:
            if cohort and number in unanswered:
                yield Message(number, COHORT, view.observers, Aggregate(change, cohort))
            continue
        # A round without any update leaves the server, and its memory, as they were.
        if _is_zero(change):
            continue
        if is_before_known and number in unanswered and (cohort or not cohorts):
            mean = algorithm.mean_of_round(change, before)
            body = Aggregate(mean, cohort or _unnamed_cohort(start, view.observers))
            yield Message(number, COHORT, view.observers, body)
        before, is_before_known = change, True


def _broadcasts(view: View) -> Mapping[int, Message]:
    """Return the broadcast of each round."""
    return {
        message.round: message
        for message in (*view.messages, *view.closing_broadcasts)
        if isinstance(message.body, Broadcast)
    }


def _unanswered_rounds(view: View, starts: Mapping[int, Message]) -> frozenset[int]:
    """Return the rounds of broadcasts of which observers read no update of others, nor a sum.

    An observer that sent the broadcast averaged the updates itself.
    """
    answered = {
        message.round
        for message in view.messages
        if isinstance(message.body, Aggregate)
        or (isinstance(message.body, Update) and message.sender not in view.observers)
    }
    heard = {number for number, start in starts.items() if start.sender not in view.observers}
    return frozenset(heard - answered)


def _unnamed_cohort(start: Message, observers: frozenset[Party]) -> frozenset[Party]:
    """Return the readers of a broadcast, those that do not observe under pseudonyms."""
    readers = start.readers - {start.sender}
    others = (Party(f"anon/{start.round}-{place}") for place in range(len(readers - observers)))
    return readers & observers | frozenset(others)


def _change(start: Message, end: Message) -> Weights:
    assert isinstance(start.body, Broadcast)
    assert isinstance(end.body, Broadcast)
    return LinearCombination((end.body.weights, start.body.weights), (1.0, -1.0))


def _is_zero(weights: Weights) -> bool:
    return not any(bool(weights[name].any()) for name in weights)
