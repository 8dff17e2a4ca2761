"""Rounds in which synthetic examples travel in place of weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import final

import torch
from torch import Tensor

from overheard.archive.reader import read_round
from overheard.archive.recorder import OpenRound, Recorder
from overheard.core.errors import PlanError
from overheard.core.messages import Broadcast, DistilledSet, Message, Missing, Weights
from overheard.core.parties import SERVER, Party
from overheard.federation.cohort import gather
from overheard.federation.federation import Federation
from overheard.federation.kept_moments import keep_moments, kept_moments
from overheard.federation.round import TO_SERVER
from overheard.learning.cohort import Member
from overheard.learning.distillation.distillation import Distillation, Distiller
from overheard.learning.distillation.moments import Moments, forgotten
from overheard.learning.distillation.synthetic import Synthetic, noise
from overheard.learning.initial import initial_weights
from overheard.learning.memory import free_bytes

RAN_AWAY = "its distillation ran away: its loss or what it distilled is no number"

COPIES = 8
"""Of each member's set: itself, its slopes, two moments, and as much in the making."""


@dataclass(frozen=True, slots=True)
class DistillingState:
    """What a round starts from.

    Args:
        shared: the set that the server sends out.
        fled: how many rounds came to nothing so far, as all who distilled ran away.

    """

    shared: Synthetic
    fled: int = 0


@final
@dataclass(eq=False)
class DistillingRun:
    """One federation that shares distilled data, round after round.

    FLiP (arXiv 2410.19548), Section IV-B. The server sends the mean of what clients distilled
    in the round before, and they go on from it; in round 0 the first weights, which never
    change, and noise. What a round came to is the set with which the next one begins, up to the
    closing one.

    A client whose distillation runs away is a missing answer, and forgets its moments. Where
    all do, the set goes back to the last that a round came to something from, and the rates of
    the distillation are halved for the rest of the run.

    Args:
        federation: which; its `distillation` is set.
        folder: the run's.

    """

    federation: Federation
    folder: Path
    how: Distillation = field(init=False)
    start: Weights = field(init=False)
    distiller: Distiller = field(init=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be distilled, or does not fit into memory."""
        federation = self.federation
        assert federation.distillation is not None
        self.how = federation.distillation
        self.start = initial_weights(federation.build_model, federation.seed.child("initial"))
        self.distiller = self.how.distiller(
            federation.build_model, self.start, federation.device
        )
        self._refuse_too_large()

    def go_on(self, recorder: Recorder, on_round: Callable[[int], None] | None) -> None:
        """Hold the rounds that the transcript lacks, and the closing one."""
        rounds = self.federation.rounds
        standing = DistillingState(self._first())
        for number in range(rounds + 1):
            if recorder.committed() <= number:
                with recorder.round() as said:
                    self._say(said, number, standing)
            if number < rounds:
                standing = self._after(number, standing)
                if on_round is not None:
                    on_round(number)

    def _say(self, said: OpenRound, number: int, standing: DistillingState) -> None:
        clients = frozenset(self.federation.clients)
        if number == 0:
            said.send(Message(0, SERVER, clients, Broadcast(self.start)))
        whole = _message(standing.shared, torch.ones(len(standing.shared.rates)))
        said.send(Message(number, SERVER, clients, whole))
        if number < self.federation.rounds:
            self._hold(said, number, standing)

    def _hold(self, said: OpenRound, number: int, standing: DistillingState) -> None:
        """Let those distil who are asked, and answer."""
        cohort = gather(self.federation, number)
        for party, reason in cohort.missing.items():
            said.send(Message(number, party, TO_SERVER, Missing(reason)))
        whole = forgotten(standing.shared, len(self.federation.clients))
        moments = kept_moments(self.folder, number - 1, whole) if number else whole
        if cohort.members:
            places = self._places(cohort.members)
            done = self.distiller.distil(
                standing.shared,
                cohort.pool,
                cohort.members,
                moments.of(places),
                round=number,
                scale=self.how.scale(number) * 0.5**standing.fled,
                seed=self.federation.seed.child("distillation"),
            )
            well = []
            for place, member in enumerate(cohort.members):
                own = done.examples.map(itemgetter(place))
                well.append(bool(done.losses[place].isfinite()) and own.is_finite())
                counts = self._counts(cohort.pool.labels, member)
                body = _message(own, counts) if well[-1] else Missing(RAN_AWAY)
                said.send(Message(number, Party(member.name), TO_SERVER, body))
            moments = moments.with_those(places, _remembered(done.moments, well))
        keep_moments(self.folder, number, moments)

    def _after(self, number: int, standing: DistillingState) -> DistillingState:
        """What the next round starts from, from what was said in this one and those before."""
        said = read_round(self.folder, number)
        answers = [
            message.body
            for message in said
            if isinstance(message.body, DistilledSet) and message.sender != SERVER
        ]
        if answers:
            return DistillingState(_mean(standing.shared, answers), standing.fled)
        if not any(m.body == Missing(RAN_AWAY) for m in said):
            return standing
        return DistillingState(self._last_good(number), standing.fled + 1)

    def _last_good(self, number: int) -> Synthetic:
        """The set with which the last round before this one began that had answers."""
        for before in reversed(range(number)):
            sets = {
                message.sender: message.body
                for message in read_round(self.folder, before)
                if isinstance(message.body, DistilledSet)
            }
            if len(sets) > 1:
                return synthetic(sets[SERVER])
        return self._first()

    def _first(self) -> Synthetic:
        federation = self.federation
        seed = federation.seed.child("synthetic")
        return noise(federation.task, self.how.samples, self.how.first_rate, seed)

    def _counts(self, labels: Tensor, member: Member) -> Tensor:
        """By example, whether it counts that this member distilled it."""
        classes = self.federation.task.classes
        ones = torch.ones(self.how.samples * classes)
        if self.how.lacking == "average":
            return ones
        held = labels[member.rows].bincount(minlength=classes) > 0
        return ones * held[torch.arange(len(ones)) % classes]

    def _refuse_too_large(self) -> None:
        """Say before the first round what memory will not hold."""
        federation = self.federation
        task, clients = federation.task, len(federation.clients)
        examples = self.how.samples * task.classes
        inputs = 4 * examples * (torch.Size(task.shape).numel() + task.classes)
        needed = self.distiller.bytes_kept(examples, clients) + COPIES * clients * inputs
        free = free_bytes(torch.device(federation.device))
        if needed > free:
            raise PlanError(
                f"distilling {examples} examples with {clients} clients takes about "
                f"{needed / 2**30:.1f} GiB, and {free / 2**30:.1f} are free: take fewer "
                "samples a class, fewer clients a round or a smaller model"
            )

    def _places(self, members: Sequence[Member]) -> Tensor:
        number_of = {party: place for place, party in enumerate(self.federation.clients)}
        return torch.tensor([number_of[Party(member.name)] for member in members])


def synthetic(body: DistilledSet) -> Synthetic:
    """What was said, to be trained on."""
    return Synthetic(body.inputs, body.labels, body.rates)


def _message(examples: Synthetic, counts: Tensor) -> DistilledSet:
    return DistilledSet(examples.inputs, examples.labels, examples.rates, counts)


def _mean(shared: Synthetic, answers: Sequence[DistilledSet]) -> Synthetic:
    """FLiP, equation (4), over those to whom an example counts; nobody's stay as they were."""
    counts = torch.stack([answer.counts for answer in answers]).double()
    total = counts.sum(0)
    sets = [synthetic(answer) for answer in answers]
    means = []
    for old, *theirs in zip(shared, *sets, strict=True):
        shape = (len(total), *[1] * (old.ndim - 1))
        summed = torch.zeros(old.shape, dtype=torch.float64)
        for one, own in zip(theirs, counts, strict=True):
            summed += own.view(shape) * one.double()
        mean = (summed / total.clamp(min=1e-300).view(shape)).to(old.dtype)
        means.append(torch.where((total > 0).view(shape), mean, old))
    return Synthetic(*means)


def _remembered(moments: Moments, well: Sequence[bool]) -> Moments:
    """The same, forgotten of those who ran away."""
    keep = torch.tensor(well)

    def kept(one: Tensor) -> Tensor:
        return torch.where(keep.view(-1, *[1] * (one.ndim - 1)), one, torch.zeros_like(one))

    return Moments(kept(moments.steps), moments.mean.map(kept), moments.square.map(kept))
