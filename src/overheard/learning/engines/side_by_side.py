"""Training of several clients at once on a GPU, each by a copy of the network of its own."""

import warnings
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from overheard.core.examples import Examples, concatenate_examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.architecture import has_dropout, needs_two_examples
from overheard.learning.batches import epoch_order
from overheard.learning.engines.cpu_draws import draws_numbers
from overheard.learning.engines.lanes import (
    CannotRepeatError,
    ClientRun,
    Lane,
    SharedTensors,
    is_close,
    no_waiting,
)
from overheard.learning.engines.sequential import check_start_weights, train_sequentially
from overheard.learning.initialization import fresh_model
from overheard.learning.memory import MEMORY_SHARE, free_bytes, full_memory
from overheard.learning.memory_layout import (
    store_kernels_channels_last,
    to_channels_first,
    to_channels_last,
)
from overheard.learning.precision import computing, step_precision
from overheard.learning.seeding import seeded
from overheard.learning.sent_tensors import sent_tensors, trainable_parameters
from overheard.learning.threads import available_cores, single_thread
from overheard.learning.training_job import (
    ClientResult,
    ClientTask,
    TrainingGroup,
    TrainingJob,
)

MOST_LANES = 16
"""Most clients that train at once."""

STEPS_PER_LANE = 8
"""Fewest steps for which a lane is made, as making one takes as long as a few steps."""

COPIERS = 4
"""Threads that copy the changes of a client out of locked memory."""

LEAST_REPLAYS = 3
"""Fewest steps with batches of a size for which a lane records a graph of such a step."""

DATA_SHARE = 0.25
"""Largest share of the free memory for the examples of all clients."""


_REFUSED = set[str]()
"""Networks whose steps cannot be repeated, by `_signature`."""


def can_train_side_by_side(structure: nn.Module, recipe: Recipe) -> bool:
    """Return whether nothing known stands against repeating a step of this network.

    Dropout and the noise of DP-SGD are drawn on the CPU, anew in each step.
    """
    is_random = recipe.private_steps is not None or has_dropout(structure)
    is_sparse = any(getattr(one, "sparse", False) for one in structure.modules())
    return not (is_random or is_sparse) and _signature(structure) not in _REFUSED


def _signature(model: nn.Module) -> str:
    """Return what tells networks apart: their classes and settings."""
    return f"{type(model).__module__}.{type(model).__qualname__} {model}"


def train_side_by_side(
    structure: nn.Module,
    jobs: Sequence[TrainingJob],
    groups: Sequence[TrainingGroup],
    lanes: int | None = None,
) -> Iterator[ClientResult]:
    """Train the clients of all groups, several at once, and yield results in input order.

    Results equal those of `train_sequentially` up to rounding. That one trains networks whose
    steps cannot be repeated, and clients whose steps are too few to gain time.

    Args:
        structure: the network, for which `can_train_side_by_side` is true.
        jobs: the job of each group, on one device.
        groups: the groups; no client has crafted gradients.
        lanes: most clients at once; None = as many as fit into memory and gain time.

    """
    clients = [
        GroupedTask(place, client)
        for place, group in enumerate(groups)
        for client in group.clients
    ]
    if lanes is None:
        steps = sum(one.client.steps_in(jobs[one.group].recipe) for one in clients)
        lanes = min(MOST_LANES, steps // STEPS_PER_LANE)
    lanes = min(lanes, len(clients))
    trainer = None
    if lanes and _examples_fit(jobs, clients):
        try:
            trainer = SideBySideTrainer(jobs, clients, lanes)
        except CannotRepeatError:
            _REFUSED.add(_signature(structure))
    if trainer is not None:
        yield from trainer.train(clients)
        return
    for job, group in zip(jobs, groups, strict=True):
        yield from train_sequentially(job, group.clients)


@final
@dataclass(frozen=True, slots=True)
class GroupedTask:
    """A client, and the place of its group."""

    group: int
    client: ClientTask


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Wave:
    """Clients that were begun together.

    Args:
        clients: the clients.
        rows: where their results are.
        ends: the events that all lanes are done.
        kept: tensors that lanes read until then.

    """

    clients: Sequence[GroupedTask]
    rows: Sequence[int]
    ends: Sequence[torch.cuda.Event | None]
    kept: Sequence[Tensor]


@final
class SideBySideTrainer:
    """A trainer of clients on several copies of a network, in waves of one client per copy.

    The launches of a step take longer than the step of a small batch, and such a step leaves
    most of a GPU idle. So a lane repeats its step as one graph, and lanes run side by side. The
    next wave is begun before the results of one are copied to the host.
    """

    def __init__(
        self, jobs: Sequence[TrainingJob], clients: Sequence[GroupedTask], lanes: int
    ) -> None:
        """Make lanes.

        Raises:
            CannotRepeatError: if a step of the network cannot be repeated.
            PlanError: if one client alone does not fit into the memory of the GPU.

        """
        self._jobs = jobs
        job, self._recipe = jobs[0], jobs[0].recipe
        self._device = job.device
        model = fresh_model(job.build_model, Seed(0))
        for one in jobs:
            check_start_weights(one.start, model)
        self._smallest_batch = 2 if needs_two_examples(model) else 1
        model.to(job.device, next(iter(job.start.values())).dtype).train()
        store_kernels_channels_last(model)
        self._names = [name for name in sent_tensors(model) if name in job.start]
        self._trained = list(trainable_parameters(model))
        self._shapes = [tuple(job.start[name].shape) for name in self._names]
        self._starts = [
            [one.start[name].to(job.device) for name in self._names] for one in jobs
        ]
        self._rows, examples = _merged_examples(jobs, clients)
        numbers = sum(one.numel() for one in self._starts[0])
        self._half = max(self._numbers_of(one) for one in clients) * lanes
        self._shared = SharedTensors(
            self._recipe,
            to_channels_last(examples.inputs.to(job.device)),
            examples.loss_labels.to(job.device),
            torch.zeros(2 * self._half, dtype=torch.int64, device=job.device),
            self._starts[0][0].new_empty(2 * lanes, numbers),
            torch.zeros(2 * lanes, dtype=torch.float64, device=job.device),
        )
        self._most_lanes = lanes
        self._locked = list[Tensor]()
        self._sizes = [one.numel() for one in self._starts[0]]
        self._is_corrected = any(one.client.correction is not None for one in clients)
        with seeded(Seed(0), job.device), self._computing():
            self._lanes = self._make_lanes(model, clients, lanes)
        self._loads = [0] * len(self._lanes)

    def train(self, clients: Sequence[GroupedTask]) -> Iterator[ClientResult]:
        """Train these clients, and yield results in input order.

        Raises:
            PlanError: if one client alone does not fit into the memory of the GPU.

        """
        place, parity, earlier = 0, 0, None
        with ThreadPoolExecutor(min(COPIERS, available_cores())) as copiers:
            try:
                while place < len(clients):
                    wave = clients[place : place + len(self._lanes)]
                    try:
                        begun = self._begin(wave, parity)
                    except torch.OutOfMemoryError as error:
                        if len(self._lanes) == 1:
                            raise full_memory(wave[0].client.name) from error
                        self._halve_lanes()
                        continue
                    place, parity = place + len(wave), 1 - parity
                    if earlier is not None:
                        yield from self._results(earlier, copiers)
                    earlier = begun
                if earlier is not None:
                    yield from self._results(earlier, copiers)
            finally:
                # Lanes may still use memory that goes with this object.
                if self._device.type == "cuda":
                    torch.cuda.synchronize(self._device)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        precision = step_precision(self._recipe)
        with single_thread(), deterministic_convolutions(), computing(precision):
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

    def _numbers_of(self, one: GroupedTask) -> int:
        return len(one.client.rows) * one.client.epochs_in(self._recipe)

    def _sizes_of(self, client: ClientTask) -> list[int]:
        """Return the sizes of an epoch's batches; a rest that is too small joins another."""
        whole, rest = divmod(len(client.rows), self._recipe.batch)
        sizes = [self._recipe.batch] * whole
        if whole and 0 < rest < self._smallest_batch:
            sizes[-1] += rest
        elif rest:
            sizes.append(rest)
        return sizes

    def _begin(self, clients: Sequence[GroupedTask], parity: int) -> _Wave:
        """Begin the training of clients, about one for each lane."""
        with self._computing():
            runs, kept = self._runs(clients, parity)
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
        return _Wave(clients, [run.row for run in runs], ends, kept)

    def _runs(
        self, clients: Sequence[GroupedTask], parity: int
    ) -> tuple[list[ClientRun], list[Tensor]]:
        """Return the runs of clients, with their order on the device, and tensors to keep."""
        place, runs = parity * self._half, list[ClientRun]()
        orders, kept = list[Tensor](), list[Tensor]()
        for number, one in enumerate(clients):
            client, job = one.client, self._jobs[one.group]
            epochs, sizes = client.epochs_in(self._recipe), self._sizes_of(client)
            corrections = (
                []
                if client.correction is None
                else [client.correction[name].to(self._device) for name in self._trained]
            )
            row = parity * self._most_lanes + number
            runs.append(
                ClientRun(self._starts[one.group], corrections, place, sizes, epochs, row)
            )
            kept += corrections
            rows = self._rows[one.group][client.rows.cpu()]
            for epoch in range(epochs):
                order = epoch_order(job.seed, job.round, client.name, epoch, len(rows))
                orders.append(rows[order])
            place += len(rows) * epochs
        self._shared.order[parity * self._half : place].copy_(torch.cat(orders))
        return runs, kept

    def _results(self, wave: _Wave, copiers: Executor) -> Iterator[ClientResult]:
        """Wait for a wave, and yield its results."""
        for end in wave.ends:
            if end is not None:
                end.wait(torch.cuda.current_stream(self._device))
        losses = self._shared.losses.tolist()
        rows = self._arriving(wave.rows)
        for one, row, numbers in zip(wave.clients, wave.rows, rows, strict=True):
            parts = torch.split(numbers, self._sizes)
            # Each a copy, so that a caller who keeps one keeps no others. New memory takes
            # longer than copying, so several threads ask for it.
            copies = copiers.map(torch.clone, parts)
            named = zip(self._names, copies, self._shapes, strict=True)
            delta = {name: part.view(shape) for name, part, shape in named}
            yield ClientResult(one.client, delta, losses[row])

    def _arriving(self, rows: Sequence[int]) -> Iterator[Tensor]:
        """Yield rows of the results on the CPU; each is valid until the next one is read.

        A GPU copies at full speed to locked memory only. The next row arrives meanwhile.
        """
        results = self._shared.results
        if self._device.type != "cuda":
            yield from (results[row].cpu() for row in rows)
            return
        if not self._locked:
            self._locked = [
                torch.empty(results.shape[1], dtype=results.dtype, pin_memory=True)
                for _ in range(2)
            ]
        arriving = deque[tuple[Tensor, torch.cuda.Event]]()
        for number, row in enumerate(rows):
            target = self._locked[number % 2]
            target.copy_(results[row], non_blocking=True)
            arriving.append((target, torch.cuda.current_stream(self._device).record_event()))
            if len(arriving) == 2:
                yield _arrived(*arriving.popleft())
        yield from (_arrived(*one) for one in arriving)

    def _make_lanes(
        self, model: nn.Module, clients: Sequence[GroupedTask], most: int
    ) -> list[Lane]:
        """Return lanes, as many as fit into memory."""
        uses = Counter[int]()
        for one in clients:
            epochs = one.client.epochs_in(self._recipe)
            uses.update(size for size in self._sizes_of(one.client) for _ in range(epochs))
        repeated = [size for size, count in uses.items() if count >= LEAST_REPLAYS * most]
        before = _reserved_bytes(self._device)
        lanes = [self._make_lane(model)]
        self._check_first(lanes[0], clients[0], repeated)
        if self._device.type == "cuda":
            each = max(1, _reserved_bytes(self._device) - before)
            others = int(MEMORY_SHARE * free_bytes(self._device) / each)
            most = min(most, 1 + others)
        while len(lanes) < most:
            try:
                lane = self._make_lane(model)
                for size in repeated:
                    lane.record(size)
            except torch.OutOfMemoryError:
                del lanes[max(1, len(lanes) // 2) :]
                break
            lanes.append(lane)
        return lanes

    def _make_lane(self, model: nn.Module) -> Lane:
        try:
            copied = deepcopy(model)
        except (TypeError, RuntimeError, NotImplementedError) as error:
            raise CannotRepeatError(str(error)) from error
        return Lane(copied, self._shared, self._names, is_corrected=self._is_corrected)

    def _check_first(self, lane: Lane, one: GroupedTask, repeated: Sequence[int]) -> None:
        """Record graphs, and check that a step changes what a graph repeats and nothing else.

        Raises:
            CannotRepeatError: if not.

        """
        (run,), kept = self._runs([one], 0)
        size = run.sizes[0]
        examples = to_channels_first(self._shared.inputs[:size])
        if self._device.type != "cpu" and draws_numbers(lane.model, examples):
            raise CannotRepeatError("the network draws random numbers")
        lane.wait_for_others()
        with lane.here():
            lane.begin(run)
            try:
                lane.compute_step(size)  # what the first call alone makes is made now
            except torch.OutOfMemoryError as error:
                raise full_memory(one.client.name) from error
            except RuntimeError as error:  # a copied network may lack its weights
                raise CannotRepeatError(str(error)) from error
            before = lane.state_outside()
            with no_waiting(self._device):
                lane.begin(run)
                lane.compute_step(size)
        if lane.state_outside() != before:
            raise CannotRepeatError("a step changes numbers that are no tensors of the network")
        computed = lane.numbers()
        for each in repeated:
            lane.record(each)
        if size in repeated:
            with lane.here():
                lane.begin(run)
                lane.step(size)
                if not all(map(is_close, lane.numbers(), computed)):
                    raise CannotRepeatError("the graph of a step does something else")
        del kept  # the lane has read them, as its numbers were read


def _arrived(numbers: Tensor, end: torch.cuda.Event) -> Tensor:
    end.synchronize()
    return numbers


def _reserved_bytes(device: torch.device) -> int:
    return torch.cuda.memory_reserved(device) if device.type == "cuda" else 0


@contextmanager
def deterministic_convolutions() -> Iterator[None]:
    """Let cuDNN take no algorithm whose sums differ from run to run, within the block."""
    backend = torch.backends.cudnn
    before = backend.deterministic, backend.benchmark
    backend.deterministic, backend.benchmark = True, False
    try:
        yield
    finally:
        backend.deterministic, backend.benchmark = before


def _used_rows(
    jobs: Sequence[TrainingJob], clients: Sequence[GroupedTask]
) -> dict[int, tuple[Examples, Tensor]]:
    """Return each pool, by its `id`, with the rows of it that clients train on."""
    used: dict[int, list[Tensor]] = {}
    for one in clients:
        used.setdefault(id(jobs[one.group].pool), []).append(one.client.rows.cpu())
    pools = {id(job.pool): job.pool for job in jobs}
    return {key: (pools[key], torch.unique(torch.cat(rows))) for key, rows in used.items()}


def _examples_fit(jobs: Sequence[TrainingJob], clients: Sequence[GroupedTask]) -> bool:
    """Return whether the examples of all clients fit into `DATA_SHARE` of the memory."""
    needed = sum(
        len(rows) * pool.inputs[0].nbytes for pool, rows in _used_rows(jobs, clients).values()
    )
    return needed <= DATA_SHARE * free_bytes(jobs[0].device)


def _merged_examples(
    jobs: Sequence[TrainingJob], clients: Sequence[GroupedTask]
) -> tuple[list[Tensor], Examples]:
    """Return one pool of the examples that clients use, and each group's rows of it."""
    parts, places, count = list[Examples](), dict[int, Tensor](), 0
    for key, (pool, rows) in _used_rows(jobs, clients).items():
        places[key] = torch.zeros(len(pool), dtype=torch.int64)
        places[key][rows] = torch.arange(count, count + len(rows))
        parts.append(pool.take(rows.to(pool.labels.device)))
        count += len(rows)
    examples = parts[0] if len(parts) == 1 else concatenate_examples(parts)
    none = torch.empty(0, dtype=torch.int64)
    return [places.get(id(job.pool), none) for job in jobs], examples
