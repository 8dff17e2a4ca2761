"""The view of a run: what its observers can read."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    EncryptedMessage,
    Message,
    Update,
    Weights,
    weighted_sum,
)
from overheard.core.parties import COHORT, Party

if TYPE_CHECKING:  # so that `overheard show` need not load torch
    import torch


@dataclass(frozen=True, slots=True)
class View:
    """The messages that colluding observers can read.

    An attack is given a view and never a transcript, so that it cannot use anything else. Only
    `Transcript.seen_by` makes a view of a run.

    Args:
        observers: the parties that pool what they read.
        messages: those that they sent or can read.
        closing_broadcasts: the next broadcast after each observed round; it has the round's new
            weights.
        hidden_mean: why the change of the global model is not the mean update of a round; "" =
            it is.
        hidden_cohorts: why mean updates that follow from broadcasts name no client; "" = they
            do, or there are none.
        encrypted: the other messages whose envelope they see, if the network is among them.

    """

    observers: frozenset[Party]
    messages: Sequence[Message]
    closing_broadcasts: Sequence[Message] = ()
    hidden_mean: str = ""
    hidden_cohorts: str = ""
    encrypted: Sequence[EncryptedMessage] = ()
    # Indexed once: with 5,000 pseudonyms of a round each, every lookup would scan 5,000
    # messages.
    _broadcasts: Mapping[int, Weights] = field(init=False, repr=False, compare=False)
    _updates: Mapping[Party, Mapping[int, Update]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Index the messages by sender and round."""
        broadcasts = dict[int, Weights]()
        updates = defaultdict[Party, dict[int, Update]](dict)
        for message in self.messages:
            if isinstance(message.body, Broadcast):
                broadcasts[message.round] = message.body.weights
            elif isinstance(message.body, Update):
                updates[message.sender][message.round] = message.body
        object.__setattr__(self, "_broadcasts", broadcasts)
        object.__setattr__(self, "_updates", dict(updates))

    def rounds(self) -> tuple[int, ...]:
        """Return the rounds with a message, in order."""
        return tuple(sorted({message.round for message in self.messages}))

    def during(self, rounds: Collection[int]) -> "View":
        """Return the view of these rounds alone, with the closing broadcast of each."""
        after = {number + 1 for number in rounds}.difference(rounds)
        return replace(
            self,
            messages=tuple(m for m in self.messages if m.round in rounds),
            closing_broadcasts=tuple(
                m
                for m in (*self.messages, *self.closing_broadcasts)
                if m.round in after and isinstance(m.body, Broadcast)
            ),
            encrypted=tuple(m for m in self.encrypted if m.round in rounds),
        )

    def broadcasts(self) -> dict[int, Weights]:
        """Return the global model by round."""
        return dict(self._broadcasts)

    def updates(self, sender: Party) -> dict[int, Update]:
        """Return the updates that one client sent in clear text, by round.

        For `COHORT`, return the mean update of all clients but the observers, from the first of
        these sources that can be read:

        - The aggregate.
        - The updates of the others: their mean, weighted by examples (or equally, if a number
          of examples is hidden).
        - Two consecutive broadcasts, for observers that did not send them. FedAvg at server
          rate 1 adds the mean update of a round to the global model: it is w(t+1) - w(t). For
          other servers, and for observers that know who took part, `deduce_means` adds what
          observers can compute as an aggregate.

        From the first and the third source the observers' own updates are subtracted (Brunner
        and Montuoro 2024, arXiv 2409.13875, section 4.1, with equal weights): with a share s of
        the weight, rest = (mean - s own) / (1 - s). The shares are by size if all sizes are
        read; otherwise s = 1 / M per client, where M counts the aggregate's cohort or the
        broadcast's readers. Equal weights are wrong if sizes differ. M is too large if not all
        readers replied: then too little is subtracted. Rounds without a source are left out.
        """
        if sender == COHORT:
            return {
                number: _update_of_others(messages, self.observers)
                for number, messages in self._by_round().items()
                if _has_other_clients(messages, self.observers)
            }
        return dict(self._updates.get(sender, {}))

    def updates_by_round(
        self, targets: Sequence[Party]
    ) -> Iterator[tuple[int, Weights, dict[Party, Update]]]:
        """Yield each round with its broadcast and the `updates` of these targets, in order."""
        updates = {target: self.updates(target) for target in targets}
        for number, start in sorted(self._broadcasts.items()):
            yield (
                number,
                start,
                {target: sent[number] for target, sent in updates.items() if number in sent},
            )

    def distilled_sets(self, sender: Party) -> dict[int, DistilledSet]:
        """Return the distilled sets that one party sent in clear text, by round."""
        return {
            message.round: message.body
            for message in self.messages
            if message.sender == sender and isinstance(message.body, DistilledSet)
        }

    def rounds_with_updates(self, sender: Party) -> tuple[int, ...]:
        """Return the rounds of `updates`, in order; reads no weights."""
        if sender == COHORT:
            return tuple(
                number
                for number, messages in self._by_round().items()
                if _has_other_clients(messages, self.observers)
            )
        return tuple(sorted(self._updates.get(sender, ())))

    def models_after(self) -> dict[int, Weights]:
        """Return the global model after each round, where the next broadcast can be read."""
        return {
            message.round - 1: message.body.weights
            for message in (*self.messages, *self.closing_broadcasts)
            if isinstance(message.body, Broadcast) and message.round > 0
        }

    def observed_rounds(self, target: Party) -> tuple[int, ...]:
        """Return the rounds in which anything of the target can be observed, in order.

        These are the rounds of its updates. Without any, they are those of the aggregates that
        name it, or of its encrypted messages or, for `COHORT`, those after which the global
        model can be read.
        """
        with_updates = self.rounds_with_updates(target)
        if with_updates:
            return with_updates
        with_sums = {
            message.round
            for message in self.messages
            if isinstance(message.body, Aggregate) and target in message.body.cohort
        }
        if with_sums:
            return tuple(sorted(with_sums))
        if target == COHORT and not self.encrypted:
            return tuple(sorted(self.models_after()))
        return tuple(sorted({m.round for m in self.encrypted if m.sender == target}))

    def cohort_sizes(self) -> dict[int, int]:
        """Return the number of clients behind the update of `COHORT`, by round, where known."""
        others = {
            number: _count_other_clients(messages, self.observers)
            for number, messages in self._by_round().items()
        }
        return {number: count for number, count in others.items() if count}

    def senders(self) -> tuple[Party, ...]:
        """Return the parties that sent a readable update, in order of first appearance."""
        return tuple(self._updates)

    def _by_round(self) -> dict[int, "_RoundMessages"]:
        next_weights = {
            m.round - 1: m.body.weights
            for m in (*self.messages, *self.closing_broadcasts)
            if isinstance(m.body, Broadcast) and not self.hidden_mean
        }
        return {
            number: _RoundMessages(
                tuple(m for m in self.messages if m.round == number), next_weights.get(number)
            )
            for number in self.rounds()
        }


@dataclass(frozen=True, slots=True)
class _RoundMessages:
    """The readable messages of one round, and the global weights after it."""

    messages: tuple[Message, ...]
    next_weights: Weights | None

    def broadcast(self) -> Message | None:
        # A recording may have another broadcast before it, for clients that only evaluate.
        sent = [m for m in self.messages if isinstance(m.body, Broadcast)]
        return sent[-1] if sent else None

    def aggregate(self) -> Aggregate | None:
        return next((m.body for m in self.messages if isinstance(m.body, Aggregate)), None)

    def updates(self) -> dict[Party, Update]:
        return {m.sender: m.body for m in self.messages if isinstance(m.body, Update)}


def _count_other_clients(messages: _RoundMessages, observers: frozenset[Party]) -> int:
    """Count the other clients whose mean update can be computed; reads no weights."""
    aggregate, start = messages.aggregate(), messages.broadcast()
    if aggregate is not None:
        return len(aggregate.cohort - observers)
    others = messages.updates().keys() - observers
    # An observer that sent the broadcast averaged the updates itself, and could read none.
    if others or start is None or messages.next_weights is None or start.sender in observers:
        return len(others)
    return len(start.readers - observers - {start.sender})


def _has_other_clients(messages: _RoundMessages, observers: frozenset[Party]) -> bool:
    """Return whether the mean update of other clients can be computed; reads no weights.

    Where only global models were recorded, nobody is named as a reader of a broadcast. Its
    change is then the mean update of an unknown number of clients.
    """
    if _count_other_clients(messages, observers):
        return True
    start = messages.broadcast()
    if start is None or messages.next_weights is None or messages.updates():
        return False
    return not start.readers and messages.aggregate() is None and start.sender not in observers


def _update_of_others(messages: _RoundMessages, observers: frozenset[Party]) -> Update:
    aggregate, start, updates = messages.aggregate(), messages.broadcast(), messages.updates()
    if aggregate is not None:
        mean = Update(aggregate.delta, aggregate.examples)
        return _remove_observers(updates, observers, mean, aggregate.cohort)
    others = [update for sender, update in updates.items() if sender not in observers]
    if others:
        return mean_update(others)
    assert start is not None
    assert isinstance(start.body, Broadcast)
    assert messages.next_weights is not None
    mean = Update(_WeightChange(start.body.weights, messages.next_weights))
    return _remove_observers(updates, observers, mean, start.readers - {start.sender})


def _remove_observers(
    updates: Mapping[Party, Update],
    observers: frozenset[Party],
    mean: Update,
    cohort: frozenset[Party],
) -> Update:
    """Subtract the observers' updates from the mean update of a cohort."""
    observed = [updates[party] for party in updates if party in cohort & observers]
    if not observed:
        return mean
    sizes = [update.examples for update in observed if update.examples is not None]
    total = mean.examples
    if total is not None and len(sizes) == len(observed) and sum(sizes) < total:
        shares = tuple(size / total for size in sizes)
        left: int | None = total - sum(sizes)
    else:
        shares, left = (1 / len(cohort),) * len(observed), None
    return Update(
        _MeanOfOthers(mean.delta, tuple(update.delta for update in observed), shares), left
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _WeightChange(Mapping[str, "torch.Tensor"]):
    """The difference of two models' weights, computed per tensor on access."""

    start: Weights
    end: Weights

    def __getitem__(self, name: str) -> "torch.Tensor":
        return self.end[name] - self.start[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.start)

    def __len__(self) -> int:
        return len(self.start)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _MeanOfOthers(Mapping[str, "torch.Tensor"]):
    """A mean update without the observers' updates, computed per tensor on access."""

    mean: Weights
    observer_updates: tuple[Weights, ...]
    shares: tuple[float, ...]

    def __getitem__(self, name: str) -> "torch.Tensor":
        whole = self.mean[name]
        rest = whole.double()
        for delta, share in zip(self.observer_updates, self.shares, strict=True):
            rest = rest - share * delta[name].double()
        return (rest / (1 - sum(self.shares))).to(whole.dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self.mean)

    def __len__(self) -> int:
        return len(self.mean)


def mean_update(updates: Sequence[Update]) -> Update:
    """Compute the mean of updates, weighted by their numbers of examples, as in FedAvg.

    McMahan et al. 2017, Algorithm 1: sum over k of (n_k / n) w_k. All weights are equal if any
    size is hidden or all sizes are 0. Sums are float64 in the given order, so the same updates
    in the same order give the same bits.
    """
    if not updates:
        raise ValueError("the mean of no updates is undefined: at least one client must reply")
    sizes = [update.examples for update in updates]
    known = [size for size in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    weights = [size / total for size in known] if total else [1 / len(sizes)] * len(sizes)
    return Update(weighted_sum([update.delta for update in updates], weights), total)
