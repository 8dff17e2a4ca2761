"""What an observer of a run can read."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from torch import Tensor

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    Update,
    Weights,
)
from overheard.core.parties import COHORT, Party


@dataclass(frozen=True, slots=True)
class View:
    """The messages that some parties, pooling what they know, can read.

    An attack is handed a view and never a transcript: what is not in the view
    cannot leak through it. Only `Transcript.seen_by` makes one from a run.

    Args:
        observers: who pool what they read.
        messages: those that they sent or can read.
        closings: the broadcasts that they read just after the rounds they listen to: what a
            round came to is told by the next one's first message.

    """

    observers: frozenset[Party]
    messages: Sequence[Message]
    closings: Sequence[Message] = ()
    # Looked up for each of many targets: 5,000 pseudonyms of a round each would read 5,000
    # messages each.
    _broadcasts: Mapping[int, Weights] = field(init=False, repr=False, compare=False)
    _updates: Mapping[Party, Mapping[int, Update]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Sort the messages by who sent them, once."""
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
        """The rounds in which something was heard, in order."""
        return tuple(sorted({message.round for message in self.messages}))

    def during(self, rounds: Collection[int]) -> "View":
        """The same observers, hearing these rounds only, and what each of them came to."""
        after = {number + 1 for number in rounds}.difference(rounds)
        return View(
            self.observers,
            tuple(m for m in self.messages if m.round in rounds),
            tuple(
                m
                for m in (*self.messages, *self.closings)
                if m.round in after and isinstance(m.body, Broadcast)
            ),
        )

    def broadcasts(self) -> dict[int, Weights]:
        """The global model of each round, by round."""
        return dict(self._broadcasts)

    def updates(self, sender: Party) -> dict[int, Update]:
        """What one client sent in the clear, by round.

        For `COHORT`, all clients of the round but the observers: what the first of these tells
        that can be read.

        - The aggregate.
        - The updates of others: their size-weighted mean (plain where a size is hidden).
        - Two broadcasts on end, for one who did not send them. FedAvg at server rate 1 moves
          the global model by the mean update of a round, so that is w(t+1) - w(t).

        From the first and the third the observers' own influence is taken out (Brunner and
        Montuoro 2024, arXiv 2409.13875, section 4.1; they have all weigh alike): with a share
        s of the weight, rest = (mean - s own) / (1 - s). By sizes where they and their total
        are read; else s = 1 / M a client, M being the cohort of the aggregate or the readers
        of the broadcast. That all weigh alike is wrong where sizes differ; that all readers
        answered, where few are asked or some fail: then too little is taken out. A round of
        which nothing is read is left out.
        """
        if sender == COHORT:
            return {
                number: _rest(said, self.observers)
                for number, said in self._by_round().items()
                if _others(said, self.observers)
            }
        return dict(self._updates.get(sender, {}))

    def distilled(self, sender: Party) -> dict[int, DistilledSet]:
        """The distilled sets that one party sent in the clear, by round."""
        return {
            message.round: message.body
            for message in self.messages
            if message.sender == sender and isinstance(message.body, DistilledSet)
        }

    def heard(self, sender: Party) -> tuple[int, ...]:
        """The rounds of `updates`, in order, without reading any weight."""
        if sender == COHORT:
            return tuple(self.cohort_sizes())
        return tuple(sorted(self._updates.get(sender, ())))

    def cohort_sizes(self) -> dict[int, int]:
        """Of how many clients the update of `COHORT` is the mean, by round, as far as told."""
        others = {n: _others(said, self.observers) for n, said in self._by_round().items()}
        return {number: count for number, count in others.items() if count}

    def senders(self) -> tuple[Party, ...]:
        """Who sent an update that can be read, in order of first appearance."""
        return tuple(self._updates)

    def _by_round(self) -> dict[int, "_Said"]:
        ends = {
            m.round - 1: m.body.weights
            for m in (*self.messages, *self.closings)
            if isinstance(m.body, Broadcast)
        }
        return {
            number: _Said(
                tuple(m for m in self.messages if m.round == number), ends.get(number)
            )
            for number in self.rounds()
        }


@dataclass(frozen=True, slots=True)
class _Said:
    """What was read of one round: its messages, and the weights that it came to."""

    messages: tuple[Message, ...]
    end: Weights | None

    def start(self) -> Message | None:
        # Of a recording there may be another before it, for those who only evaluate.
        sent = [m for m in self.messages if isinstance(m.body, Broadcast)]
        return sent[-1] if sent else None

    def aggregate(self) -> Aggregate | None:
        return next((m.body for m in self.messages if isinstance(m.body, Aggregate)), None)

    def updates(self) -> dict[Party, Update]:
        return {m.sender: m.body for m in self.messages if isinstance(m.body, Update)}


def _others(said: _Said, observers: frozenset[Party]) -> int:
    """How many clients that do not observe are told of; reads no weight."""
    aggregate, start = said.aggregate(), said.start()
    if aggregate is not None:
        return len(aggregate.cohort - observers)
    others = said.updates().keys() - observers
    # Who sent the broadcast knows what it took the mean of, and that it read none of it.
    if others or start is None or said.end is None or start.sender in observers:
        return len(others)
    return len(start.readers - observers - {start.sender})


def _rest(said: _Said, observers: frozenset[Party]) -> Update:
    aggregate, start, updates = said.aggregate(), said.start(), said.updates()
    if aggregate is not None:
        mean = Update(aggregate.delta, aggregate.examples)
        return _without(updates, observers, mean, aggregate.cohort)
    others = [update for sender, update in updates.items() if sender not in observers]
    if others:
        return mean_update(others)
    assert start is not None
    assert isinstance(start.body, Broadcast)
    assert said.end is not None
    mean = Update(_Change(start.body.weights, said.end))
    return _without(updates, observers, mean, start.readers - {start.sender})


def _without(
    updates: Mapping[Party, Update],
    observers: frozenset[Party],
    mean: Update,
    cohort: frozenset[Party],
) -> Update:
    """The mean update of a cohort, what observers in it sent taken out."""
    own = [updates[who] for who in updates if who in cohort & observers]
    if not own:
        return mean
    sizes = [update.examples for update in own if update.examples is not None]
    total = mean.examples
    if total is not None and len(sizes) == len(own) and sum(sizes) < total:
        shares = tuple(size / total for size in sizes)
        left: int | None = total - sum(sizes)
    else:
        shares, left = (1 / len(cohort),) * len(own), None
    return Update(_Rest(mean.delta, tuple(update.delta for update in own), shares), left)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Change(Mapping[str, Tensor]):
    """What was added to the weights, each tensor read when it is asked for."""

    start: Weights
    end: Weights

    def __getitem__(self, name: str) -> Tensor:
        return self.end[name] - self.start[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.start)

    def __len__(self) -> int:
        return len(self.start)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rest(Mapping[str, Tensor]):
    """A mean without some of its parts, each tensor worked out when it is asked for."""

    mean: Weights
    own: tuple[Weights, ...]
    shares: tuple[float, ...]

    def __getitem__(self, name: str) -> Tensor:
        whole = self.mean[name]
        rest = whole.double()
        for delta, share in zip(self.own, self.shares, strict=True):
            rest = rest - share * delta[name].double()
        return (rest / (1 - sum(self.shares))).to(whole.dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self.mean)

    def __len__(self) -> int:
        return len(self.mean)


def mean_update(updates: Sequence[Update]) -> Update:
    """The size-weighted mean of updates, tensor by tensor, as FedAvg takes it.

    McMahan et al. 2017, Algorithm 1: sum over k of (n_k / n) w_k. Where any size is hidden,
    or nobody says to have any example, all weigh alike. Sums run in float64 in the order
    given, so the same updates in the same order give the same bits.
    """
    if not updates:
        raise ValueError("the mean of no updates is undefined: at least one client must answer")
    sizes = [update.examples for update in updates]
    known = [size for size in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    weights = [size / total for size in known] if total else [1 / len(sizes)] * len(sizes)
    return Update(_weighted_sum([update.delta for update in updates], weights), total)


def _weighted_sum(deltas: Sequence[Weights], weights: Sequence[float]) -> Mapping[str, Tensor]:
    """One tensor at a time, so that lazily read updates never stand in memory together."""
    mean = {}
    for name in deltas[0]:
        first = deltas[0][name]
        total = first.double() * weights[0]
        for delta, weight in zip(deltas[1:], weights[1:], strict=True):
            total += delta[name].double() * weight
        mean[name] = total.to(first.dtype)
    return mean
