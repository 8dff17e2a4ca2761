"""Collects the evidence of a recording, round by round, from a sample of its numbers."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.archive.weights import tensor_shapes
from overheard.consistency.adaptive import MOST_NUMBERS, AdaptiveEvidence, AdaptiveTracks
from overheard.consistency.evidence import (
    CHANGES,
    ROUNDING,
    ClientReplies,
    StepEvidence,
    align,
    find_cancelling,
    multiply,
)
from overheard.consistency.message_faults import FaultFinder, SampledReply
from overheard.consistency.samples import (
    MAX_NUMBERS_OF_REPLY,
    Sample,
    SamplePlan,
    are_finite,
    plan_sample,
    thinning_slice,
)
from overheard.consistency.statement import StatedStep
from overheard.core.algorithm.algorithm import ReceivedUpdate, ServerState, mean_factors
from overheard.core.errors import PlanError
from overheard.core.messages import Aggregate, Broadcast, Message, Update, Weights

KEPT_NUMBERS = 2**22
"""Most numbers of single replies that are kept, from the first rounds on."""

MIN_NUMBERS_OF_REPLY = 2**8
"""Fewest numbers of the smaller sample of a reply, however many replies a round has."""

KEPT_ROUNDS = 12
"""Most rounds of which single replies are kept, to tell why their mean does not fit."""

MOST_ROUNDS = 128
"""Most rounds of which the products are kept; a result then takes up to two seconds."""

GOLDEN = 2654435769
"""2**32 times the golden ratio less 1. Its multiples are spread evenly modulo 2**32, and so is
each second or third of them."""

MEANS = ("examples", "equal", "stated")
"""The weights of the mean: numbers of examples, all alike, or those of the stated algorithm."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SampledRound:
    """A round with replies, before its next broadcast is known.

    Args:
        round: its number.
        names: the sampled tensors that all replies have.
        broadcast: the sample of the broadcast.
        means: the different means of the replies, by their weights.
        kinds: by the weights of a mean, under which weights it is in `means`.
        replies: the smaller sample of single replies.
        count: number of replies.

    """

    round: int
    names: tuple[str, ...]
    broadcast: Sample
    means: Mapping[str, Float[Tensor, " numbers"]]
    kinds: Mapping[str, str]
    replies: ClientReplies
    count: int


@final
class EvidenceCollector:
    """Collects evidence; keeps the last broadcasts, and products of at most `MOST_ROUNDS`.

    These rounds are spread evenly over the recording, whatever repeats in it.

    Args:
        statement: what is stated of the server's step.
        faults: looks at each reply.

    """

    def __init__(self, statement: StatedStep, faults: FaultFinder) -> None:
        self._statement, self._faults = statement, faults
        self._plan: SamplePlan | None = None
        self._broadcasts = dict[int, Sample]()
        self._pending: SampledRound | None = None
        self._before: SampledRound | None = None
        self._names: tuple[str, ...] = ()
        self._memory: Mapping[str, Weights] = {}
        self._is_memory_whole = True
        self._tracks = AdaptiveTracks(statement.algorithm)
        self._kept_numbers = 0
        self._share = 1.0
        self.rounds = list[StepEvidence]()
        self.adaptive = list[AdaptiveEvidence]()
        self.kept = list[tuple[int, ClientReplies, float]]()
        self.replied_rounds = 0

    def add(self, messages: Sequence[Message]) -> None:
        """Add all messages of the next round."""
        broadcast = next((one for one in messages if isinstance(one.body, Broadcast)), None)
        if broadcast is None:
            self._pending = self._before = None
            self._forget()
            return
        number, bodies = broadcast.round, _replies(messages)
        self.replied_rounds += bool(bodies)
        sample = self._read_broadcast(broadcast)
        if not sample.is_finite:
            self._pending = self._before = None
            self._forget()
            return
        self._broadcasts[number] = sample
        self._broadcasts.pop(number - len(CHANGES) - 1, None)
        if self._pending is not None and self._pending.round == number - 1:
            self._finish(self._pending)
        self._before, self._pending = self._pending, None
        if bodies:
            self._pending = self._sample_replies(number, sample, bodies)

    def _read_broadcast(self, message: Message) -> Sample:
        assert isinstance(message.body, Broadcast)
        shapes = tensor_shapes(message.body.weights)
        if self._plan is None or dict(self._plan.shapes) != shapes:
            self._plan = plan_sample(shapes)
            self._broadcasts.clear()
            self._pending = self._before = None
            if message.round:
                self._forget()
        return self._plan.read(message.body.weights)

    def _sample_replies(
        self, number: int, broadcast: Sample, bodies: Sequence[Message]
    ) -> SampledRound | None:
        assert self._plan is not None
        deltas = [one.body.delta for one in bodies if isinstance(one.body, Update | Aggregate)]
        names = tuple(
            name for name in broadcast.parts if all(name in delta for delta in deltas)
        )
        if not names:
            return None
        start = broadcast.flat(names)
        factors = self._factors(bodies)
        kinds = {
            kind: next(one for one in factors if factors[one] == factors[kind])
            for kind in factors
        }
        means = {kind: torch.zeros_like(start) for kind in kinds.values()}
        small, is_finite = _thin_replies(len(start), len(bodies)), True
        replies, rows = list[SampledReply](), list[Tensor]()
        for index, message in enumerate(bodies):
            assert isinstance(message.body, Update | Aggregate)
            numbers = self._plan.read(message.body.delta).flat(names)
            if not are_finite(numbers):
                is_finite = False
                self._faults.add_unreadable(number, message.sender)
                continue
            for kind, mean in means.items():
                mean.add_(numbers, alpha=factors[kind][index])
            rows.append(numbers[small].float())
            replies.append(SampledReply(message.sender, message.body, rows[-1]))
        self._faults.add(number, replies, start[small])
        if not is_finite:
            self._forget()
            return None
        clients = ClientReplies(
            tuple(one.sender for one in bodies),
            factors["examples"],
            torch.stack(rows),
            start[small],
            {},
        )
        return SampledRound(number, names, broadcast, means, kinds, clients, len(bodies))

    def _factors(self, bodies: Sequence[Message]) -> dict[str, tuple[float, ...]]:
        """Return the factors of the replies in the mean, by its weights."""
        if isinstance(bodies[0].body, Aggregate):
            return {"examples": (1.0,), "equal": (1.0,), "stated": (1.0,)}
        received = [
            ReceivedUpdate(one.sender, one.body)
            for one in bodies
            if isinstance(one.body, Update)
        ]
        found = {
            "examples": mean_factors(received, "examples"),
            "equal": mean_factors(received, "equal"),
        }
        algorithm = self._statement.algorithm
        if algorithm is not None and not self._statement.is_asynchronous:
            # A metric that the algorithm needs may not have been sent.
            with suppress(PlanError):
                found["stated"] = algorithm.factors(received)
        return found

    def _finish(self, done: SampledRound) -> None:
        """Keep the products of a round whose next broadcast is now known."""
        assert self._plan is not None
        names = done.names
        if any(set(names) - set(one.parts) for one in self._broadcasts.values()):
            self._forget()
            return
        if names != (self._names or names):
            self._forget()
        self._names = names
        starts = {
            number: one.flat(names)
            for number, one in self._broadcasts.items()
            if number <= done.round + 1
        }
        changes = {
            name: starts[done.round + 1 - back] - starts[done.round - back]
            for back, name in enumerate(CHANGES)
            if {done.round + 1 - back, done.round - back} <= starts.keys()
        }
        start = starts[done.round]
        # Before the first round the model did not change.
        still = {name: torch.zeros_like(start) for name in CHANGES[done.round + 1 :]}
        changes = {**changes, **still}
        vectors = {"b": start, **changes, **_mean_vectors(done, self._before, start)}
        predicted = self._predict(done.round, start, vectors)
        if predicted is not None:
            vectors["predicted"] = predicted
        rounding = ROUNDING * self._broadcasts[done.round + 1].precision
        small, few = (
            _thin_replies(len(start), done.count),
            thinning_slice(len(start), MOST_NUMBERS),
        )
        adaptive = self._tracks.advance(
            done.round, {name: one[few] for name, one in vectors.items()}, rounding
        )
        clients = replace(
            done.replies, changes={name: one[small] for name, one in changes.items()}
        )
        self._keep_replies(done.round, clients, rounding / ROUNDING)
        if _is_in_share(done.round, self._share):
            self.adaptive.append(adaptive)
            self._keep_evidence(done, vectors, clients, rounding)

    def _keep_evidence(
        self,
        done: SampledRound,
        vectors: Mapping[str, Tensor],
        clients: ClientReplies,
        rounding: float,
    ) -> None:
        """Keep the products of the vectors of a round, and of its clients' replies."""
        assert self._plan is not None
        moved = _moved_numbers(self._plan, done.names, vectors)
        if moved is not None:
            vectors = _select(vectors, moved)
        places, fit, test = multiply(vectors)
        tested = vectors["b"][1::2]
        self.rounds.append(
            StepEvidence(
                done.round,
                done.count,
                places,
                fit,
                test,
                len(vectors["b"]) - len(tested),
                len(tested),
                float((tested * rounding).square().sum()),
                align(clients),
                find_cancelling(clients),
            )
        )
        if len(self.rounds) > MOST_ROUNDS:
            self._share /= 2
            self.rounds = [one for one in self.rounds if _is_in_share(one.round, self._share)]
            self.adaptive = [
                one for one in self.adaptive if _is_in_share(one.round, self._share)
            ]

    def _predict(
        self, number: int, start: Tensor, vectors: Mapping[str, Tensor]
    ) -> Tensor | None:
        """Return the change that the stated algorithm predicts; None if none is known.

        With absurd settings it is not finite, so that nothing is known.
        """
        algorithm = self._statement.algorithm
        mean = vectors.get("stated")
        if algorithm is None or mean is None:
            return None
        if algorithm.has_memory and not self._is_memory_whole:
            return None
        state = ServerState({"all": start}, self._memory)
        after = algorithm.next_state(number, state, {"all": mean}, ())
        self._memory = after.memory
        change = after.weights["all"] - start
        return change if are_finite(change) else None

    def _forget(self) -> None:
        """Note that a step is unknown, on which the memory of a server depends."""
        self._is_memory_whole = False
        self._tracks.stop()

    def _keep_replies(self, number: int, clients: ClientReplies, precision: float) -> None:
        size = clients.deltas.numel()
        if len(self.kept) < KEPT_ROUNDS and self._kept_numbers + size <= KEPT_NUMBERS:
            self._kept_numbers += size
            self.kept.append((number, clients, precision))


def _thin_replies(length: int, replies: int) -> slice:
    """Return which places of a sample are in that of each reply, fewer if replies are many."""
    most = MAX_NUMBERS_OF_REPLY
    while most > MIN_NUMBERS_OF_REPLY and most * replies > KEPT_NUMBERS:
        most //= 2
    return thinning_slice(length, most)


def _is_in_share(number: int, share: float) -> bool:
    """Return whether a round is in a share of all rounds; smaller shares are parts of it."""
    return number * GOLDEN % 2**32 < share * 2**32


def _replies(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the aggregate of a round if there is one, otherwise its updates."""
    aggregates = tuple(one for one in messages if isinstance(one.body, Aggregate))
    return aggregates[:1] or tuple(one for one in messages if isinstance(one.body, Update))


def _mean_vectors(
    done: SampledRound, before: SampledRound | None, start: Tensor
) -> dict[str, Tensor]:
    """Return the means as they are stored, with the broadcast added and subtracted."""
    vectors = dict[str, Tensor]()
    for kind in MEANS:
        mean = done.means[done.kinds[kind]] if kind in done.kinds else None
        if mean is None:
            continue
        same = done.kinds[kind]
        if same != kind:
            vectors[kind] = vectors[same]
            vectors[f"{kind}+b"] = vectors[f"{same}+b"]
            vectors[f"{kind}-b"] = vectors[f"{same}-b"]
        else:
            vectors[kind] = mean
            vectors[f"{kind}+b"] = mean + start
            vectors[f"{kind}-b"] = mean - start
        if before is not None and before.names == done.names and kind in before.kinds:
            vectors[f"{kind}'"] = before.means[before.kinds[kind]]
    return vectors


def _moved_numbers(
    plan: SamplePlan, names: Sequence[str], vectors: Mapping[str, Tensor]
) -> Tensor | None:
    """Return which numbers belong to tensors that the server changed; None = all.

    A server that leaves a tensor out of its mean leaves it as it was, which says nothing of the
    replies. If it changed no tensor at all, none is left out.
    """
    lengths = [plan.size(name) for name in names]
    is_moved = [bool(part.any()) for part in torch.split(vectors["c0"], lengths)]
    if all(is_moved) or not any(is_moved):
        return None
    return torch.cat(
        [torch.full((length,), moved) for length, moved in zip(lengths, is_moved, strict=True)]
    )


def _select(vectors: Mapping[str, Tensor], chosen: Tensor) -> dict[str, Tensor]:
    """Return the chosen numbers of all vectors; a vector with two names stays one."""
    known = dict[int, Tensor]()
    return {
        name: known.setdefault(id(vector), vector[chosen]) for name, vector in vectors.items()
    }
