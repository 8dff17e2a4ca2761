"""The steps of stacked clients; on a GPU, recorded once as CUDA graphs and repeated."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.learning.engines.batch_schedule import BatchSchedule
from overheard.learning.engines.dropout_noise import DropoutNoise
from overheard.learning.engines.private_gradients import add_noise
from overheard.learning.engines.recorded_steps import RecordedSteps, StepState
from overheard.learning.engines.stacked_networks import StackedNetworks
from overheard.learning.optimizers import Optimizer, build_optimizer

_Part = tuple[list[Tensor], list[Tensor], Optimizer]
"""Weights, gradients and optimizer of the clients that take a step."""

LEAST_REPEATS = 4
"""Fewest steps of one shape that are still to come for which one is recorded, as recording runs
the code of a step again, and comparing it takes a step."""

FULL_SHARE = 0.75
"""Share of a full batch from which a GPU computes on a whole one, so that the last batches of
epochs need no graph of their own. The examples that fill it have weight 0."""


@final
@dataclass(frozen=True, slots=True)
class ClientDraws:
    """What is drawn for each client in every step.

    Args:
        dropout: the factors of dropout; None = nothing is dropped.
        noise: generators of the noise of DP-SGD.
        examples: number of examples of each client, which scale that noise.

    """

    dropout: DropoutNoise | None
    noise: Sequence[torch.Generator]
    examples: Sequence[int]


@final
class StackedSteps:
    """The steps of a stack of clients, in memory that the next stack of its shape uses again.

    On an H200 each operation took 7 us to launch (commit e7cb1747), and 100 MLPs kept it busy
    for 12 % of the time. A CUDA graph launches those of a step at once. The numbers of the
    batches, of the step and of Adam are in the GPU's memory, so that every step of a shape is
    the same. Steps with draws, which a generator of the CPU makes, are launched one by one.

    Args:
        networks: compute the gradients.
        recipe: how the clients train.
        starts: the start weights of each client.
        corrections: the stacked corrections, or [].
        pool: examples of all clients. On another device than the weights, their batches are
            sent step by step.
        schedule: the batches.
        recorded: records the steps, and no others.

    """

    def __init__(
        self,
        networks: StackedNetworks,
        recipe: Recipe,
        starts: Sequence[Sequence[Tensor]],
        corrections: list[Tensor],
        pool: Examples,
        schedule: BatchSchedule,
        recorded: RecordedSteps,
    ) -> None:
        self.stack = [torch.stack(weights) for weights in zip(*starts, strict=True)]
        self._networks, self._recipe, self._pool = networks, recipe, pool
        self._device = self.stack[0].device
        self._gradients = [torch.empty_like(weight) for weight in self.stack]
        self._corrections = corrections
        self._optimizer = build_optimizer(recipe, self.stack, corrections)
        self._schedule = schedule
        self._rows = schedule.rows.to(self._device)
        self._weights = schedule.weights.to(self.stack[0])
        self._shares = schedule.shares.to(self._device)
        self._losses = torch.zeros(len(starts), dtype=torch.float64, device=self._device)
        # On a CPU, a number: looking a row up by it is faster.
        self._step: int | Tensor = 0
        if self._device.type != "cpu":
            self._step = torch.zeros(1, dtype=torch.int64, device=self._device)
        self._batch = None if pool.labels.device == self._device else self._batch_memory()
        self._part = self.stack, self._gradients, self._optimizer
        self._recorded = recorded

    def can_load(
        self,
        clients: int,
        corrections: Sequence[Tensor],
        pool: Examples,
        schedule: BatchSchedule,
    ) -> bool:
        """Return whether this memory suits other clients."""
        return (
            self._device.type != "cpu"
            and clients == len(self._losses)
            and len(corrections) == len(self._corrections)
            and pool is self._pool
            and schedule.rows.shape == self._rows.shape
        )

    def load(
        self,
        starts: Sequence[Sequence[Tensor]],
        corrections: list[Tensor],
        schedule: BatchSchedule,
    ) -> None:
        """Take other clients, for which `can_load` is true, in place of these."""
        for stacked, weights in zip(self.stack, zip(*starts, strict=True), strict=True):
            torch.stack(weights, out=stacked)
        self._optimizer.restart(self.stack, corrections)
        self._schedule = schedule
        self._rows.copy_(schedule.rows)
        self._weights.copy_(schedule.weights)
        self._shares.copy_(schedule.shares)
        self._losses.zero_()
        if isinstance(self._step, Tensor):
            self._step.zero_()
        self._part = self.stack, self._gradients, self._optimizer

    def run(self, draws: ClientDraws) -> Float[Tensor, " clients"]:
        """Take all steps; return the mean loss of each client's last epoch."""
        can_repeat = (
            self._device.type != "cpu"
            and draws.dropout is None
            and self._recipe.private_steps is None
        )
        shapes = list(zip(self._schedule.active, self._widths(can_repeat), strict=True))
        coming = Counter(shapes)
        for number, shape in enumerate(shapes):
            active, width = shape
            self._keep_first(active)
            if draws.dropout is not None:
                sizes = (self._schedule.weights[number, :active] > 0).sum(1).tolist()
                draws.dropout.start_step(sizes)
            if self._batch is not None:
                rows = self._schedule.rows[number, :active, :width]
                self._send(self._batch, rows.flatten())
            take = partial(self._take, self._part, shape, draws)
            if can_repeat and can_record(self._device):
                is_worth_it = coming[shape] >= LEAST_REPEATS
                self._recorded.take(shape, take, self._state(), is_worth_it=is_worth_it)
            else:
                take()
            coming[shape] -= 1
        return self._losses

    def _widths(self, can_repeat: bool) -> list[int]:
        """Return how many examples of each client are computed in each step."""
        full = self._rows.shape[2]
        return [
            full if can_repeat and one >= FULL_SHARE * full else one
            for one in self._schedule.widths
        ]

    def _keep_first(self, active: int) -> None:
        """Leave all clients but the first out of the steps to come."""
        stack, gradients, optimizer = self._part
        if active < len(stack[0]):
            self._part = (
                [weight[:active] for weight in stack],
                [gradient[:active] for gradient in gradients],
                optimizer.first(active),
            )

    def _batch_memory(self) -> Examples:
        """Return memory for the examples of a step, in place of the pool."""
        examples = self._rows[0].numel()
        return Examples(
            *(
                torch.zeros(examples, *one.shape[1:], dtype=one.dtype, device=self._device)
                for one in self._pool.tensors()
            )
        )

    def _send(self, batch: Examples, rows: Tensor) -> None:
        """Copy these rows of the pool to the device."""
        rows = rows.to(self._pool.labels.device)
        for memory, held in zip(batch.tensors(), self._pool.tensors(), strict=True):
            memory[: len(rows)].copy_(held.index_select(0, rows))

    def _state(self) -> StepState:
        """Return what the next step changes."""
        stack, _, optimizer = self._part
        numbers = [self._step] if isinstance(self._step, Tensor) else []
        return StepState(stack, [*optimizer.state(), self._losses, *numbers])

    def _take(self, part: _Part, shape: tuple[int, int], draws: ClientDraws) -> None:
        """Take one step with so many clients and examples of each."""
        stack, gradients, optimizer = part
        active, width = shape
        private = self._recipe.private_steps
        if self._batch is None:
            rows = _row(self._rows, self._step)[:active, :width].flatten()
            inputs = self._pool.inputs.index_select(0, rows)
            labels = self._pool.loss_labels.index_select(0, rows)
        else:
            inputs = self._batch.inputs[: active * width]
            labels = self._batch.loss_labels[: active * width]
        losses = self._networks.write_gradients(
            gradients,
            stack,
            inputs.view(active, width, *inputs.shape[1:]),
            labels.view(active, width, *labels.shape[1:]),
            _row(self._weights, self._step)[:active, :width],
            draws.dropout,
            None if private is None else private.clip,
        )
        if private is not None:
            for client in range(active):
                own = [gradient[client] for gradient in gradients]
                add_noise(own, private, draws.examples[client], draws.noise[client])
        optimizer.step(stack, gradients)
        self._losses[:active].add_(losses * _row(self._shares, self._step)[:active])
        self._step += 1


def can_record(device: torch.device) -> bool:
    """Return whether the device can record CUDA graphs."""
    return device.type == "cuda"


def _row(table: Tensor, number: int | Tensor) -> Tensor:
    """Return the row with this number, which may be on a GPU."""
    return table[number] if isinstance(number, int) else table.index_select(0, number)[0]
