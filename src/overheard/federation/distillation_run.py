"""Rounds in which clients send synthetic examples instead of weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import final

import torch
from torch import Tensor

from overheard.archive.reader import read_round
from overheard.archive.recorder import OpenRound, Recorder
from overheard.archive.tensor_files import read_tensors, to_safetensors
from overheard.core.errors import OutputError, PlanError, TranscriptError
from overheard.core.messages import Broadcast, DistilledSet, Message, MissingReply, Weights
from overheard.core.parties import SERVER, Party
from overheard.disk.folders import remove_file
from overheard.disk.writing import write_bytes
from overheard.federation.cohort import sample_cohort
from overheard.federation.federation import Federation
from overheard.federation.round import TO_SERVER
from overheard.learning.distillation.distillation import Distillation, Distiller
from overheard.learning.distillation.moments import AdamMoments, zero_moments
from overheard.learning.distillation.synthetic import SyntheticExamples, draw_noise_examples
from overheard.learning.initialization import initial_weights
from overheard.learning.memory import free_bytes
from overheard.learning.training_job import ClientTask

TENSOR_NAMES = tuple(
    f"{kind} of {part}" for kind in ("mean", "square") for part in ("inputs", "labels", "rates")
)


DIVERGED = "its distillation ran away: its loss or what it distilled is no number"

COPIES_OF_SETS = 8
"""Copies of each client's set in memory: set, gradients, two moments, and four new ones."""


@dataclass(frozen=True, slots=True)
class DistillationState:
    """The state at the start of a round.

    Args:
        shared: the set that the server sends.
        failed_rounds: number of rounds so far in which the distillation of all clients
            diverged.

    """

    shared: SyntheticExamples
    failed_rounds: int = 0


@final
@dataclass(eq=False)
class DistillationRun:
    """One run of a federation that shares distilled data.

    FLiP (arXiv 2410.19548), Section IV-B. In round 0 the server sends the initial weights,
    which never change, and a set of noise. In later rounds it sends the mean of the sets that
    clients distilled in the round before. Clients start from the set that the server sends. A
    closing broadcast sends the set of the last round.

    If the distillation of a client diverges, the client sends a `MissingReply`, and its moments
    are reset. If all clients diverge, the set is reset to the last one from which a round
    succeeded, and the rates of the distillation are halved for the rest of the run.

    Args:
        federation: the federation; its `distillation` is set.
        folder: folder of the run.
        inside: the output folder that it is in.

    """

    federation: Federation
    folder: Path
    inside: Path
    distillation: Distillation = field(init=False)
    start: Weights = field(init=False)
    distiller: Distiller = field(init=False)

    def __post_init__(self) -> None:
        """Refuse a model that does not support distillation, or too little memory."""
        federation = self.federation
        assert federation.distillation is not None
        self.distillation = federation.distillation
        self.start = initial_weights(federation.build_model, federation.seed.child("initial"))
        self.distiller = self.distillation.build_distiller(
            federation.build_model, self.start, federation.device
        )
        self._refuse_too_large()

    def run_missing_rounds(
        self, recorder: Recorder, on_round: Callable[[int], None] | None
    ) -> None:
        """Run the rounds that the transcript does not hold yet, and the closing broadcast."""
        rounds = self.federation.rounds
        state = DistillationState(self._first_set())
        for number in range(rounds + 1):
            if recorder.committed_rounds() <= number:
                with recorder.open_round() as record:
                    self._record_round(record, number, state)
            if number < rounds:
                state = self._next_state(number, state)
                if on_round is not None:
                    on_round(number)

    def _record_round(self, record: OpenRound, number: int, state: DistillationState) -> None:
        clients = frozenset(self.federation.clients)
        if number == 0:
            record.record(Message(0, SERVER, clients, Broadcast(self.start)))
        shared = _to_message(state.shared, torch.ones(len(state.shared.rates)))
        record.record(Message(number, SERVER, clients, shared))
        if number < self.federation.rounds:
            self._distil_round(record, number, state)

    def _distil_round(self, record: OpenRound, number: int, state: DistillationState) -> None:
        """Distil with the cohort of this round, and record what its clients send."""
        cohort = sample_cohort(self.federation, number)
        for party, reason in cohort.missing.items():
            record.record(Message(number, party, TO_SERVER, MissingReply(reason)))
        initial = zero_moments(state.shared, len(self.federation.clients))
        moments = read_moments(self.folder, number - 1, initial) if number else initial
        if cohort.clients:
            indices = self._client_indices(cohort.clients)
            result = self.distiller.distil(
                state.shared,
                cohort.pool,
                cohort.clients,
                moments.select(indices),
                round=number,
                rate_scale=self.distillation.rate_scale(number) * 0.5**state.failed_rounds,
                seed=self.federation.seed.child("distillation"),
            )
            converged = []
            for index, client in enumerate(cohort.clients):
                examples = result.examples.map(itemgetter(index))
                is_finite = bool(result.losses[index].isfinite()) and examples.is_finite()
                converged.append(is_finite)
                counts = self._counts(cohort.pool.labels, client)
                body = _to_message(examples, counts) if is_finite else MissingReply(DIVERGED)
                record.record(Message(number, Party(client.name), TO_SERVER, body))
            moments = moments.replace_clients(
                indices, _reset_diverged(result.moments, converged)
            )
        write_moments(self.folder, number, moments, inside=self.inside)

    def _next_state(self, number: int, state: DistillationState) -> DistillationState:
        """Return the state after this round, computed from its messages and earlier ones."""
        messages = read_round(self.folder, number)
        sets = [
            message.body
            for message in messages
            if isinstance(message.body, DistilledSet) and message.sender != SERVER
        ]
        if sets:
            return DistillationState(_mean_set(state.shared, sets), state.failed_rounds)
        if not any(message.body == MissingReply(DIVERGED) for message in messages):
            return state
        return DistillationState(self._last_set_with_answers(number), state.failed_rounds + 1)

    def _last_set_with_answers(self, number: int) -> SyntheticExamples:
        """Return the server's set in the last round before this one with a client's set."""
        for before in reversed(range(number)):
            sets = {
                message.sender: message.body
                for message in read_round(self.folder, before)
                if isinstance(message.body, DistilledSet)
            }
            if len(sets) > 1:
                return to_synthetic_examples(sets[SERVER])
        return self._first_set()

    def _first_set(self) -> SyntheticExamples:
        federation = self.federation
        seed = federation.seed.child("synthetic")
        return draw_noise_examples(
            federation.task, self.distillation.samples, self.distillation.first_rate, seed
        )

    def _counts(self, labels: Tensor, client: ClientTask) -> Tensor:
        """Return, for each synthetic example, 1 if this client counts in its mean, else 0."""
        classes = self.federation.task.classes
        ones = torch.ones(self.distillation.samples * classes)
        if self.distillation.lacking == "average":
            return ones
        has_class = labels[client.rows].bincount(minlength=classes) > 0
        return ones * has_class[torch.arange(len(ones)) % classes]

    def _refuse_too_large(self) -> None:
        """Refuse, before the first round, a distillation that needs more than free memory."""
        federation = self.federation
        task, clients = federation.task, len(federation.clients)
        examples = self.distillation.samples * task.classes
        inputs = 4 * examples * (torch.Size(task.shape).numel() + task.classes)
        needed = (
            self.distiller.needed_bytes(examples, clients) + COPIES_OF_SETS * clients * inputs
        )
        free = free_bytes(torch.device(federation.device))
        if needed > free:
            raise PlanError(
                f"distillation: {examples} examples with {clients} clients need about "
                f"{needed / 2**30:.1f} GiB, but {free / 2**30:.1f} GiB are free; choose fewer "
                "samples per class, fewer clients or a smaller model"
            )

    def _client_indices(self, clients: Sequence[ClientTask]) -> Tensor:
        index_of = {party: index for index, party in enumerate(self.federation.clients)}
        return torch.tensor([index_of[Party(client.name)] for client in clients])


def to_synthetic_examples(body: DistilledSet) -> SyntheticExamples:
    """Convert a message body to synthetic examples."""
    return SyntheticExamples(body.inputs, body.labels, body.rates)


def _to_message(examples: SyntheticExamples, counts: Tensor) -> DistilledSet:
    return DistilledSet(examples.inputs, examples.labels, examples.rates, counts)


def _mean_set(shared: SyntheticExamples, bodies: Sequence[DistilledSet]) -> SyntheticExamples:
    """Average the sets (FLiP, equation (4)) by their counts; keep examples without a count."""
    counts = torch.stack([body.counts for body in bodies]).double()
    total = counts.sum(0)
    sets = [to_synthetic_examples(body) for body in bodies]
    means = []
    for old, *new in zip(shared, *sets, strict=True):
        shape = (len(total), *[1] * (old.ndim - 1))
        summed = torch.zeros(old.shape, dtype=torch.float64)
        for tensor, count in zip(new, counts, strict=True):
            summed += count.view(shape) * tensor.double()
        mean = (summed / total.clamp(min=1e-300).view(shape)).to(old.dtype)
        means.append(torch.where((total > 0).view(shape), mean, old))
    return SyntheticExamples(*means)


def _reset_diverged(moments: AdamMoments, converged: Sequence[bool]) -> AdamMoments:
    """Reset the moments of clients whose distillation diverged."""
    mask = torch.tensor(converged)

    def reset(one: Tensor) -> Tensor:
        return torch.where(mask.view(-1, *[1] * (one.ndim - 1)), one, torch.zeros_like(one))

    return AdamMoments(reset(moments.steps), moments.mean.map(reset), moments.square.map(reset))


def write_moments(folder: Path, number: int, moments: AdamMoments, *, inside: Path) -> None:
    """Write the state after a round, and remove the state of two rounds before.

    Raises:
        OutputError: if it cannot be written.

    """
    tensors = dict(zip(TENSOR_NAMES, (*moments.mean, *moments.square), strict=True))
    content = to_safetensors({"steps": moments.steps.float(), **tensors})
    write_bytes(_path(folder, number), content, inside=inside)
    remove_file(_path(folder, number - 2), inside=inside)


def read_moments(folder: Path, number: int, like: AdamMoments) -> AdamMoments:
    """Read the state after a round.

    Raises:
        OutputError: if it is missing or of another run, so that the run cannot continue.

    """
    path = _path(folder, number)
    expected = dict(zip(TENSOR_NAMES, (*like.mean, *like.square), strict=True))
    shapes = {name: tuple(one.shape) for name, one in expected.items()}
    shapes["steps"] = tuple(like.steps.shape)
    try:
        read = read_tensors(path, tuple(shapes), shapes)
    except TranscriptError as error:
        raise OutputError(
            f"{folder}: the run cannot continue after round {number}, because the optimizer "
            f"state of clients is lost ({error}); remove the folder to start again"
        ) from error
    tensors = [read[name] for name in TENSOR_NAMES]
    steps = read["steps"].to(like.steps.dtype)
    return AdamMoments(steps, SyntheticExamples(*tensors[:3]), SyntheticExamples(*tensors[3:]))


def _path(folder: Path, number: int) -> Path:
    return folder / "distillation" / f"r{number:04d}.safetensors"
