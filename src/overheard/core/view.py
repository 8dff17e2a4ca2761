"""What an observer of a run can read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from overheard.core.messages import Aggregate, Broadcast, Message, Update, Weights
from overheard.core.parties import COHORT, Party


@dataclass(frozen=True, slots=True)
class View:
    """The messages that some parties, pooling what they know, can read.

    An attack is handed a view and never a transcript: what is not in the view
    cannot leak through it. Only `Transcript.seen_by` makes one from a run.
    """

    observers: frozenset[Party]
    messages: Sequence[Message]

    def rounds(self) -> tuple[int, ...]:
        """The rounds in which something was heard, in order."""
        return tuple(sorted({message.round for message in self.messages}))

    def during(self, rounds: Collection[int]) -> "View":
        """The same observers, hearing these rounds only."""
        return View(self.observers, tuple(m for m in self.messages if m.round in rounds))

    def broadcasts(self) -> dict[int, Weights]:
        """The global model of each round, by round."""
        return {m.round: m.body.weights for m in self.messages if isinstance(m.body, Broadcast)}

    def updates(self, sender: Party) -> dict[int, Update]:
        """What one client sent in the clear, by round.

        For `COHORT`: the aggregate that was read or, where single updates of others were, the
        size-weighted mean of all (plain mean where a size is hidden).
        """
        if sender == COHORT:
            return self._cohort_updates()
        return {
            m.round: m.body
            for m in self.messages
            if isinstance(m.body, Update) and m.sender == sender
        }

    def heard(self, sender: Party) -> tuple[int, ...]:
        """The rounds of `updates`, in order, without reading any weight."""
        return tuple(
            sorted(
                {
                    m.round
                    for m in self.messages
                    if (isinstance(m.body, Update) and m.sender == sender)
                    or (sender == COHORT and self._tells_of_others(m))
                }
            )
        )

    def senders(self) -> tuple[Party, ...]:
        """Who sent an update that can be read, in order of first appearance."""
        return tuple(
            dict.fromkeys(m.sender for m in self.messages if isinstance(m.body, Update))
        )

    def _cohort_updates(self) -> dict[int, Update]:
        aggregates = {
            m.round: Update(m.body.delta, m.body.examples)
            for m in self.messages
            if isinstance(m.body, Aggregate)
        }
        said: dict[int, list[Update]] = {}
        for m in self.messages:
            if isinstance(m.body, Update):
                said.setdefault(m.round, []).append(m.body)
        return {
            number: aggregates[number] if number in aggregates else mean_update(said[number])
            for number in self.heard(COHORT)
        }

    def _tells_of_others(self, message: Message) -> bool:
        """What observers sent themselves is no news of the cohort."""
        return isinstance(message.body, Aggregate) or (
            isinstance(message.body, Update) and message.sender not in self.observers
        )


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
