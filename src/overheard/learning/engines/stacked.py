"""Training of many clients at once, with their weights stacked along a first axis."""

import warnings
from collections.abc import Iterator, Sequence
from typing import final

import torch
from torch import Tensor, nn

from overheard.core.examples import Examples
from overheard.core.recipe import LossName, Precision, Recipe
from overheard.learning.architecture import has_dropout, is_mlp_with_dropout
from overheard.learning.engines.batch_schedule import (
    GroupedClient,
    merge_pools,
    schedule_batches,
)
from overheard.learning.engines.change_reading import read_changes
from overheard.learning.engines.dropout_noise import DropoutNoise
from overheard.learning.engines.private_gradients import noise_generator
from overheard.learning.engines.recorded_steps import RecordedSteps, network_signature
from overheard.learning.engines.sequential import check_start_weights
from overheard.learning.engines.stacked_mlp import StackedMlp
from overheard.learning.engines.stacked_networks import StackedNetworks
from overheard.learning.engines.stacked_steps import ClientDraws, StackedSteps
from overheard.learning.engines.triton_support import runs_triton
from overheard.learning.engines.vmapped_networks import VmappedNetworks
from overheard.learning.memory import free_bytes, full_memory
from overheard.learning.precision import computing, step_precision
from overheard.learning.sent_tensors import trainable_parameters
from overheard.learning.threads import single_thread
from overheard.learning.training_job import ClientResult, ClientTask, TrainingGroup

CPU = torch.device("cpu")

POOL_SHARE = 0.25
"""Largest share of the free memory of a GPU for the examples of all clients."""


def build_stacked_networks(
    model: nn.Module,
    label_smoothing: float = 0.0,
    loss: LossName = "cross_entropy",
    *,
    device: torch.device = CPU,
    precision: Precision = "float32",
) -> StackedNetworks:
    """Build the stacked networks that suit this architecture and device.

    Args:
        model: a network of the architecture.
        label_smoothing: of the targets.
        loss: name of the loss.
        device: where to compute.
        precision: of products on a GPU.

    """
    if is_mlp_with_dropout(model):
        return StackedMlp(model, label_smoothing, loss)
    vmapped = VmappedNetworks(model, label_smoothing, loss)
    has_convolutions = any(isinstance(one, nn.Conv2d) for one in model.modules())
    if not has_convolutions or not runs_triton(device):
        return vmapped
    # Here, as Triton takes a while to import and is missing on many machines.
    from overheard.learning.engines.kernel_check import kernels_agree
    from overheard.learning.engines.stacked_convolutions import StackedConvolutions

    if not StackedConvolutions.supports(model) or not kernels_agree(device):
        return vmapped
    return StackedConvolutions(model, label_smoothing, loss, precision)


@final
class StackedTrainer:
    """A trainer of clients, of one group or several, as one computation.

    Clients of unequal size take unequally many steps. They are sorted by steps, so that
    finished clients come last and are dropped; momentum does not change them after that. A
    batch that is not full is padded with examples of weight 0.

    On one core, with 16 to 32 clients of a layer of 64 on 196 numbers and batches of 32, it
    processes 0.6 million examples a second, and 0.14 million with 2. Two trainers in two
    threads reach 0.34 million together, as they wait for each other between steps.
    """

    def __init__(
        self, model: nn.Module, recipe: Recipe, round: int, device: torch.device
    ) -> None:
        self._model = model
        self._recipe = recipe
        self._round = round
        self._device = device
        self._networks = build_stacked_networks(
            model.to(device).train(),
            recipe.label_smoothing,
            recipe.loss,
            device=device,
            precision=step_precision(recipe),
        )
        self._names = list(trainable_parameters(model))
        self._read = dict[TrainingGroup, list[Tensor]]()
        self._near: tuple[Examples, Examples] | None = None
        self._steps: StackedSteps | None = None
        self._recorded = RecordedSteps(network_signature(model))

    def train(self, clients: Sequence[GroupedClient]) -> list[ClientResult]:
        """Train these clients, and return the results in input order."""
        order = sorted(range(len(clients)), key=lambda index: self._rank(clients[index].client))
        ranked = [clients[index] for index in order]
        with torch.no_grad():
            with single_thread(), computing(step_precision(self._recipe)):
                starts = self._starts(ranked)
                steps = self._load(ranked, starts)
                losses = steps.run(self._draws(ranked)).tolist()
            # Changes of large tables are copied by several threads.
            changes = read_changes(steps.stack, starts)
        results: dict[int, ClientResult] = {}
        for rank, index in enumerate(order):
            delta = dict(zip(self._names, changes[rank], strict=True))
            results[index] = ClientResult(clients[index].client, delta, losses[rank])
        return [results[index] for index in range(len(clients))]

    def release(self) -> None:
        """Give the memory of the last clients back."""
        self._steps = self._near = None
        self._recorded.forget()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _load(
        self, clients: Sequence[GroupedClient], starts: Sequence[Sequence[Tensor]]
    ) -> StackedSteps:
        """Return the steps of these clients, in the memory of the last ones if that suits."""
        pool, rows = merge_pools(clients)
        schedule = schedule_batches(self._recipe, self._round, clients, rows)
        corrections = self._corrections(clients, starts[0])
        pool = self._bring_near(pool)
        steps, self._steps = self._steps, None
        if steps is not None and steps.can_load(len(clients), corrections, pool, schedule):
            steps.load(starts, corrections, schedule)
        else:
            del steps  # before memory for others is taken
            self._recorded.forget()
            steps = StackedSteps(
                self._networks,
                self._recipe,
                starts,
                corrections,
                pool,
                schedule,
                self._recorded,
            )
        if self._device.type != "cpu":
            self._steps = steps
        return steps

    def _bring_near(self, pool: Examples) -> Examples:
        """Return the pool on the device, unless it takes too much memory there."""
        if pool.labels.device.type == self._device.type:
            return pool
        if self._near is not None and self._near[0] is pool:
            return self._near[1]
        self._near = None
        size = sum(one.numel() * one.element_size() for one in pool.tensors())
        if size > POOL_SHARE * free_bytes(self._device):
            return pool
        near = pool.to(self._device)
        self._near = pool, near
        return near

    def _rank(self, client: ClientTask) -> tuple[int, int]:
        """Return a key that sorts clients by steps and then by examples, most first."""
        return -client.steps_in(self._recipe), -len(client.rows)

    def _draws(self, clients: Sequence[GroupedClient]) -> ClientDraws:
        """Return what is drawn for the clients, as `SequentialTrainer` draws it."""
        dropout = None
        if has_dropout(self._model):
            dropout = DropoutNoise(
                [
                    one.group.seed.child("dropout", self._round, one.client.name)
                    for one in clients
                ]
            )
        noise = [
            noise_generator(one.group.seed, self._round, one.client.name) for one in clients
        ]
        return ClientDraws(dropout, noise, [len(one.client.rows) for one in clients])

    def _corrections(
        self, clients: Sequence[GroupedClient], start: Sequence[Tensor]
    ) -> list[Tensor]:
        """Return the stacked corrections of all clients, 0 where a client has none, or []."""
        given = [client.client.correction for client in clients]
        if all(correction is None for correction in given):
            return []
        return [
            torch.stack(
                [
                    torch.zeros_like(weight)
                    if correction is None
                    else correction[name].to(weight)
                    for correction in given
                ]
            )
            for name, weight in zip(self._names, start, strict=True)
        ]

    def _starts(self, clients: Sequence[GroupedClient]) -> list[list[Tensor]]:
        """Return the start weights of each client; those of a group are copied once."""
        held, self._read = self._read, {}
        for client in clients:
            if client.group not in self._read:
                self._read[client.group] = held.get(client.group) or self._copy(client.group)
        types = {weights[0].dtype for weights in self._read.values()}
        if len(types) > 1:
            raise ValueError(f"groups must have start weights of one dtype, got {types}")
        return [self._read[client.group] for client in clients]

    def _copy(self, group: TrainingGroup) -> list[Tensor]:
        """Return the start weights of a group on the device."""
        check_start_weights(group.start, self._model)
        return [group.start[name].to(self._device) for name in self._names]


def train_in_chunks(
    trainer: StackedTrainer, clients: Sequence[GroupedClient], size: int
) -> Iterator[ClientResult]:
    """Train `size` clients at a time, fewer once a GPU's memory is full, in input order.

    Raises:
        PlanError: if one client does not fit into the memory of the GPU.

    """
    begin, was_told = 0, False
    while begin < len(clients):
        chunk = clients[begin : begin + size]
        results = _train_if_it_fits(trainer, chunk)
        if results is not None:
            yield from results
            begin += len(chunk)
            continue
        trainer.release()
        size = (len(chunk) + 1) // 2
        if not was_told:
            warnings.warn(
                f"{len(chunk)} clients at once do not fit into the memory of the GPU: fewer "
                "are trained at once, which changes results by rounding alone",
                stacklevel=2,
            )
            was_told = True


def _train_if_it_fits(
    trainer: StackedTrainer, chunk: Sequence[GroupedClient]
) -> list[ClientResult] | None:
    """Return the results, or None if several clients exceed the memory of the GPU."""
    try:
        return trainer.train(chunk)
    except torch.OutOfMemoryError as error:
        if len(chunk) == 1:
            raise full_memory(chunk[0].client.name) from error
    return None
