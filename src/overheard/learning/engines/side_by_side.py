"""Training of several clients at once on a GPU, each by a copy of the network of its own."""

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.architecture import has_dropout, needs_two_examples
from overheard.learning.batches import epoch_order
from overheard.learning.engines.batch_schedule import GroupedClient, merge_pools
from overheard.learning.engines.change_reading import read_changes
from overheard.learning.engines.cpu_draws import draws_numbers
from overheard.learning.engines.lanes import (
    CannotRepeatError,
    ClientRun,
    Lane,
    SharedTensors,
    first_line,
    no_waiting,
)
from overheard.learning.engines.recorded_steps import are_equal, network_signature
from overheard.learning.engines.sequential import check_start_weights, train_left_sequentially
from overheard.learning.engines.stacked_steps import can_record
from overheard.learning.initialization import fresh_model
from overheard.learning.memory import MEMORY_SHARE, free_bytes
from overheard.learning.memory_layout import MemoryOrder
from overheard.learning.precision import computing, step_precision
from overheard.learning.seeding import seeded
from overheard.learning.sent_tensors import sent_tensors, trainable_parameters
from overheard.learning.threads import single_thread
from overheard.learning.training_job import ClientResult, TrainingGroup, TrainingJob

MOST_LANES = 8
"""Most clients that train at once. On an H200, a prototype with plain `conv_net`s was no faster
with 32 of them. This engine was not measured."""

STEPS_PER_LANE = 8
"""Fewest steps for which a lane is made. In that prototype, recording a step took as long as
three steps without a graph; a lane takes some more, which are compared with it."""

LEAST_REPEATS = 3
"""Fewest steps with batches of one size, for each lane, for which such a step is recorded."""

DATA_SHARE = 0.25
"""Largest share of the free memory for the examples of all clients, and as much for the trained
weights of two waves."""

_REFUSED = set[str]()
"""Networks that cannot train side by side, by `network_signature`."""


def can_train_side_by_side(structure: nn.Module, recipe: Recipe) -> bool:
    """Return whether nothing known stands against repeating a step of this network.

    Dropout and the noise of DP-SGD are drawn on the CPU, anew in each step.
    """
    is_random = recipe.private_steps is not None or has_dropout(structure)
    is_sparse = any(getattr(one, "sparse", False) for one in structure.modules())
    return not (is_random or is_sparse) and network_signature(structure) not in _REFUSED


def train_side_by_side(
    structure: nn.Module,
    jobs: Sequence[TrainingJob],
    groups: Sequence[TrainingGroup],
    lanes: int | None = None,
) -> Iterator[ClientResult]:
    """Train the clients of all groups, several at once, and yield results in input order.

    Results equal those of `train_sequentially` up to rounding. That one trains too few clients,
    too many examples for the memory, networks whose steps cannot be repeated, and the clients
    that are left if anything fails. The reason of the latter two is told once for a network.

    Args:
        structure: the network, for which `can_train_side_by_side` is true.
        jobs: the job of each group, on one device.
        groups: the groups; no client has crafted gradients.
        lanes: most clients at once; None = as many as fit into memory and have enough steps.

    """
    clients = [GroupedClient(group, one) for group in groups for one in group.clients]
    done = 0
    if lanes is None:
        steps = sum(one.client.steps_in(jobs[0].recipe) for one in clients)
        lanes = min(MOST_LANES, steps // STEPS_PER_LANE)
    if clients and lanes and _examples_fit(jobs):
        try:
            for result in _train_in_lanes(jobs[0], clients, min(lanes, len(clients))):
                yield result
                done += 1
        except Exception as error:  # of a GPU, its libraries or the network, of whatever kind
            _wait_for(jobs[0].device)  # lanes still compute with memory that is free now
            if not isinstance(error, torch.OutOfMemoryError):
                _REFUSED.add(network_signature(structure))
            warnings.warn(
                "clients of this network train one after the other, which changes no result "
                f"but may take longer: {first_line(error)}",
                stacklevel=2,
            )
    yield from train_left_sequentially(jobs, groups, done)


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        with suppress(RuntimeError):  # it is that of the failure
            torch.cuda.synchronize(device)


def _train_in_lanes(
    job: TrainingJob, clients: Sequence[GroupedClient], lanes: int
) -> Iterator[ClientResult]:
    # Nothing else refers to the trainer, so that its memory is free once this ends or fails.
    yield from SideBySideTrainer(job, clients, lanes).train()


def _examples_fit(jobs: Sequence[TrainingJob]) -> bool:
    pools = {id(job.pool): job.pool for job in jobs}
    needed = sum(pool.inputs.nbytes for pool in pools.values())
    return needed <= DATA_SHARE * free_bytes(jobs[0].device)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Wave:
    """Clients that were begun together.

    Args:
        clients: the clients.
        starts: the start weights of each.
        rows: where their trained weights are.
        ends: the events that all lanes are done.
        kept: tensors that lanes read until then.

    """

    clients: Sequence[GroupedClient]
    starts: Sequence[Sequence[Tensor]]
    rows: slice
    ends: Sequence[torch.cuda.Event | None]
    kept: Sequence[Tensor]


@final
class SideBySideTrainer:
    """A trainer of clients on several copies of a network, in waves of one client per copy.

    Each copy has a lane, on which it repeats its step as one CUDA graph. Lanes wait for nothing
    but the start of their wave, and that is begun before the results of the last one are read.
    """

    def __init__(self, job: TrainingJob, clients: Sequence[GroupedClient], lanes: int) -> None:
        """Make lanes.

        Args:
            job: what the clients share, apart from start weights, pool and seed.
            clients: those to train, one or more.
            lanes: most clients at once.

        Raises:
            CannotRepeatError: if a step of the network cannot be repeated.
            torch.OutOfMemoryError: if one client does not fit into the memory of the GPU.

        """
        self._clients, self._round, self._recipe = clients, job.round, job.recipe
        self._device = job.device
        model = fresh_model(job.build_model, Seed(0))
        self._smallest_batch = 2 if needs_two_examples(model) else 1
        self._names = [name for name in sent_tensors(model) if name in job.start]
        self._trained = list(trainable_parameters(model))
        self._starts = dict[TrainingGroup, list[Tensor]]()
        for group in {one.group for one in clients}:
            check_start_weights(group.start, model)
            start = [group.start[name].to(job.device) for name in self._names]
            self._starts[group] = start
        first = next(iter(self._starts.values()))
        model.to(job.device, first[0].dtype).train()
        order = MemoryOrder.on(job.device, step_precision(self._recipe))
        order.store_kernels(model)
        examples, self._rows = merge_pools(clients)
        weights = sum(one.nbytes for one in first)
        room = int(DATA_SHARE * free_bytes(job.device) / (2 * weights))
        self._most_lanes = lanes = max(1, min(lanes, room))
        self._half = max(self._numbers_of(one) for one in clients) * lanes
        self._shared = SharedTensors(
            self._recipe,
            order,
            order.stored(examples.inputs.to(job.device)),
            examples.loss_labels.to(job.device),
            torch.zeros(2 * self._half, dtype=torch.int64, device=job.device),
            [one.new_empty(2 * lanes, *one.shape) for one in first],
            torch.zeros(2 * lanes, dtype=torch.float64, device=job.device),
        )
        self._is_corrected = any(one.client.correction is not None for one in clients)
        with seeded(Seed(0), job.device), self._computing():
            self._lanes = self._make_lanes(model)
        self._loads = [0] * len(self._lanes)

    def train(self) -> Iterator[ClientResult]:
        """Train the clients, and yield results in input order."""
        place, parity, earlier = 0, 0, None
        try:
            while place < len(self._clients):
                wave = range(place, min(place + len(self._lanes), len(self._clients)))
                try:
                    begun = self._begin(wave, parity)
                except torch.OutOfMemoryError:
                    if len(self._lanes) == 1:
                        raise
                    self._halve_lanes()
                    continue
                place, parity = wave.stop, 1 - parity
                if earlier is not None:
                    yield from self._results(earlier)
                earlier = begun
            if earlier is not None:
                yield from self._results(earlier)
        finally:
            # Lanes may still use memory that goes with this object.
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        with single_thread(), computing(step_precision(self._recipe)):
            yield

    def _halve_lanes(self) -> None:
        """Free the memory of half of the lanes."""
        torch.cuda.synchronize(self._device)
        kept = len(self._lanes) // 2
        warnings.warn(
            f"{len(self._lanes)} clients side by side do not fit into the memory of the GPU: "
            f"{kept} are trained at once, which changes no result but takes longer",
            stacklevel=2,
        )
        del self._lanes[kept:], self._loads[kept:]
        torch.cuda.empty_cache()

    def _numbers_of(self, one: GroupedClient) -> int:
        return len(one.client.rows) * one.client.epochs_in(self._recipe)

    def _sizes_of(self, one: GroupedClient) -> list[int]:
        """Return the sizes of an epoch's batches; a rest that is too small joins another."""
        whole, rest = divmod(len(one.client.rows), self._recipe.batch)
        sizes = [self._recipe.batch] * whole
        if whole and 0 < rest < self._smallest_batch:
            sizes[-1] += rest
        elif rest:
            sizes.append(rest)
        return sizes

    def _begin(self, wave: range, parity: int) -> _Wave:
        """Begin the training of these clients, about one for each lane."""
        with self._computing():
            runs = self._runs(wave, parity)
            for lane in self._lanes:
                lane.wait_for_others()
            turns: dict[int, list[ClientRun]] = {}
            for run in sorted(runs, key=lambda one: -sum(one.sizes) * one.epochs):
                # Lanes are still busy with earlier clients, some longer than others.
                number = min(range(len(self._lanes)), key=self._loads.__getitem__)
                self._loads[number] += sum(run.sizes) * run.epochs
                turns.setdefault(number, []).append(run)
            paths = [self._lanes[number].train(own) for number, own in turns.items()]
            while paths:
                paths = [one for one in paths if next(one, self) is not self]
            ends = [lane.mark() for lane in self._lanes]
        return _Wave(
            self._clients[wave.start : wave.stop],
            [run.start for run in runs],
            slice(runs[0].row, runs[-1].row + 1),
            ends,
            [one for run in runs for one in run.corrections],
        )

    def _runs(self, wave: range, parity: int) -> list[ClientRun]:
        """Return the runs of these clients, whose order is then on the device."""
        place, runs, orders = parity * self._half, list[ClientRun](), list[Tensor]()
        for number in wave:
            one, rows = self._clients[number], self._rows[number]
            client, epochs = one.client, one.client.epochs_in(self._recipe)
            corrections = (
                []
                if client.correction is None
                else [client.correction[name].to(self._device) for name in self._trained]
            )
            row = parity * self._most_lanes + number - wave.start
            start, sizes = self._starts[one.group], self._sizes_of(one)
            runs.append(ClientRun(start, corrections, place, sizes, epochs, row))
            for epoch in range(epochs):
                order = epoch_order(one.group.seed, self._round, client.name, epoch, len(rows))
                orders.append(rows[order])
            place += self._numbers_of(one)
        self._shared.order[parity * self._half : place].copy_(torch.cat(orders))
        return runs

    def _results(self, wave: _Wave) -> Iterator[ClientResult]:
        """Wait for a wave, and yield its results."""
        for end in wave.ends:
            if end is not None:
                end.wait(torch.cuda.current_stream(self._device))
        losses = self._shared.losses[wave.rows].tolist()
        trained = [one[wave.rows] for one in self._shared.trained]
        changes = read_changes(trained, wave.starts)
        for one, change, loss in zip(wave.clients, changes, losses, strict=True):
            delta = dict(zip(self._names, change, strict=True))
            yield ClientResult(one.client, delta, loss)

    def _make_lanes(self, model: nn.Module) -> list[Lane]:
        """Return lanes, as many as fit into memory."""
        most, uses = self._most_lanes, Counter[int]()
        for one in self._clients:
            epochs = one.client.epochs_in(self._recipe)
            uses.update(size for size in self._sizes_of(one) for _ in range(epochs))
        repeated = [size for size, count in uses.items() if count >= LEAST_REPEATS * most]
        before = _reserved_bytes(self._device)
        (run,) = self._runs(range(1), 0)
        lanes = [self._make_lane(model)]
        self._check_step(lanes[0], run)
        expected = {size: _numbers_after(lanes[0], run, size) for size in repeated}
        self._record(lanes[0], run, expected)
        if can_record(self._device):
            each = max(1, _reserved_bytes(self._device) - before)
            others = int(MEMORY_SHARE * free_bytes(self._device) / each)
            most = min(most, 1 + others)
        while len(lanes) < most:
            try:
                lanes.append(self._make_lane(model))
                self._record(lanes[-1], run, expected)
            except torch.OutOfMemoryError:
                del lanes[len(lanes) // 2 :]
                break
        return lanes

    def _make_lane(self, model: nn.Module) -> Lane:
        copied = deepcopy(model)
        for module in copied.modules():
            if isinstance(module, nn.RNNBase):
                module.flatten_parameters()
        return Lane(copied, self._shared, self._names, is_corrected=self._is_corrected)

    def _check_step(self, lane: Lane, run: ClientRun) -> None:
        """Check that a step changes what a graph repeats and nothing else.

        Raises:
            CannotRepeatError: if not.

        """
        size = run.sizes[0]
        examples = self._shared.memory_order.read(self._shared.inputs[:size])
        if self._device.type != "cpu" and draws_numbers(lane.model, examples):
            raise CannotRepeatError("it draws random numbers")
        _numbers_after(lane, run, size)  # what the first step alone makes is made now
        before = lane.state_outside()
        with no_waiting(self._device):
            _numbers_after(lane, run, size)
        if lane.state_outside() != before:
            raise CannotRepeatError("a step changes more than the numbers of its tensors")

    def _record(self, lane: Lane, run: ClientRun, expected: dict[int, list[Tensor]]) -> None:
        """Record steps, and compare each with the same step without a graph.

        Raises:
            CannotRepeatError: if a step cannot be recorded, or its graph does something else.
            torch.OutOfMemoryError: if the memory of the GPU is full.

        """
        for size, numbers in expected.items():
            lane.record(size)
            if not are_equal(run.start, numbers, _numbers_after(lane, run, size)):
                raise CannotRepeatError("a recorded step does something else when repeated")


def _numbers_after(lane: Lane, run: ClientRun, size: int) -> list[Tensor]:
    """Return the numbers of the network after the first step of a client."""
    lane.wait_for_others()
    with lane.here():
        lane.begin(run)
        lane.step(size)
        numbers = lane.numbers()
    lane.let_others_wait()
    return numbers


def _reserved_bytes(device: torch.device) -> int:
    return torch.cuda.memory_reserved(device) if device.type == "cuda" else 0
