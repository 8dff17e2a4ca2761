"""Local training of clients and of an attacker's virtual clients."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil
from time import perf_counter
from typing import Literal

import torch
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.architecture import (
    can_write_layers_out,
    has_batch_norm,
    has_dropout,
    has_embedding,
    is_mlp_with_dropout,
    is_recurrent,
    needs_two_examples,
)
from overheard.learning.devices.choice import settle_device
from overheard.learning.devices.training_work import GpuEngine, TrainingWork, count_step
from overheard.learning.engines.batch_schedule import GroupedClient
from overheard.learning.engines.sequential import train_left_sequentially, train_sequentially
from overheard.learning.engines.side_by_side import (
    can_train_side_by_side,
    train_side_by_side,
)
from overheard.learning.engines.stacked import StackedTrainer, train_in_chunks
from overheard.learning.engines.vmapped_networks import runs_under_vmap
from overheard.learning.initialization import fresh_model, model_structure
from overheard.learning.memory import LARGEST_CHUNK, clients_that_fit
from overheard.learning.sent_tensors import sent_buffers, sent_tensors
from overheard.learning.threads import available_cores
from overheard.learning.training_job import ClientResult, ClientTask, TrainingGroup, TrainingJob
from overheard.learning.workers import processes, starter

Engine = Literal["auto", "sequential", "processes", "stacked"]

GroupTrainer = Callable[[TrainingJob, Sequence[ClientTask]], Iterator[ClientResult]]
"""A function that trains one group, for engines that do not stack groups."""

CLIENTS_PER_WORKER = 4
"""Clients per worker in training or not yet taken by the caller, so that no worker waits."""


def train_cohort(
    build_model: BuildModel,
    start: Weights,
    pool: Examples,
    clients: Sequence[ClientTask],
    recipe: Recipe,
    *,
    seed: Seed,
    round: int,
    engine: Engine = "auto",
    chunk: int | None = None,
    workers: int | None = None,
    device: torch.device | str = "cpu",
) -> Iterator[ClientResult]:
    """Train every client from the same start weights, and yield results in input order.

    This is `train_groups` for one group; see there.

    Args:
        build_model: builds the architecture; its weights are not used.
        start: weights from which every client starts; their dtype is used throughout.
        pool: examples of all clients.
        clients: the clients to train, each on its rows of the pool.
        recipe: how each client trains.
        seed: root of every random draw.
        round: number of the round.
        engine: the engine that trains them.
        chunk: clients in memory at once; None measures how many fit.
        workers: worker processes; None = one per core.
        device: where to compute; worker processes compute on the CPU. "auto" = on a GPU if
            that saves time, else on the CPU.

    Raises:
        PlanError: if the engine cannot train this model on this machine.
        WorkerError: if a worker process dies.

    """
    return train_groups(
        build_model,
        (TrainingGroup(start, pool, clients, seed),),
        recipe,
        round=round,
        engine=engine,
        chunk=chunk,
        workers=workers,
        device=device,
    )


def prepare_workers(
    build_model: BuildModel, engine: Engine, workers: int | None, device: str
) -> None:
    """Start workers in the background, if training may use them; see `train_groups`."""
    if engine not in {"auto", "processes"} or device != "cpu":
        return
    target = torch.device(device)
    # The first build is a real one: a model that keeps tensors for its later builds, such as a
    # cached mask, would else keep tensors without data.
    if engine == "auto" and _gains_from_stacking(fresh_model(build_model, Seed(0)), target):
        return
    starter.start_for(workers)


def train_groups(
    build_model: BuildModel,
    groups: Sequence[TrainingGroup],
    recipe: Recipe,
    *,
    round: int,
    engine: Engine = "auto",
    chunk: int | None = None,
    workers: int | None = None,
    device: torch.device | str = "cpu",
) -> Iterator[ClientResult]:
    """Train the clients of every group, and yield results in input order.

    Training is lazy, one chunk ahead at most: a caller that drops used results needs memory for
    one chunk only. A stacked chunk may hold clients of several groups; the other engines train
    one group after the other.

    The order of batches, and dropout, depend on the group's seed, the round and the client's
    name only. All engines agree up to rounding. "processes" equals "sequential" bit for bit.
    "stacked" agrees to 1e-12 in float64; in float32 rounding makes trajectories drift apart.
    The last bits of a stacked client depend on the other clients in its chunk.

    Args:
        build_model: builds the architecture; its weights are not used.
        groups: the groups of clients; all start weights have one dtype.
        recipe: how each client trains.
        round: number of the round.
        engine: "auto" stacks MLPs on the CPU and nearly all models on a GPU. Others train side
            by side on a GPU, and in worker processes once that saves time. Clients with crafted
            gradients are trained in sequence, whatever it is.
        chunk: clients in memory at once; None measures how many fit.
        workers: worker processes; None = one per core.
        device: where to compute; worker processes compute on the CPU. "auto" = on a GPU if
            that saves time, else on the CPU.

    Raises:
        PlanError: if the engine cannot train this model on this machine.
        WorkerError: if a worker process dies.

    """
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be 1 or more, got {chunk}")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be 1 or more, got {workers}")
    worker_count = available_cores() if workers is None else workers
    target = _settled_device(build_model, groups, recipe, device, engine, chunk)
    jobs = [_training_job(build_model, one, recipe, round, target) for one in groups]
    engine = _engine_of_crafted(groups) or engine
    structure = model_structure(build_model)
    check_private_steps(recipe, structure)
    obstacle, model = _obstacle_to_stacking(structure, recipe), None
    is_gain = engine == "auto" and _gains_from_stacking(structure, target)
    if obstacle is None and (engine == "stacked" or is_gain):
        model = fresh_model(build_model, Seed(0)).train()
        if not _runs_stacked(model, groups):
            obstacle, model = "a network that draws random numbers or reads its tensors", None
    if engine == "stacked" and obstacle is not None:
        raise PlanError(
            f"engine: 'stacked' cannot train {obstacle}; choose 'auto', 'sequential' or "
            "'processes'"
        )
    if model is not None:
        size = chunk or _chunk_that_fits(model, jobs, groups)
        if jobs:  # what is not sent, such as frozen parameters, takes the dtype of what is
            model.to(dtype=next(iter(jobs[0].start.values())).dtype)
        clients = [GroupedClient(one, client) for one in groups for client in one.clients]
        stacked = train_in_chunks(StackedTrainer(model, recipe, round, target), clients, size)
        if target.type == "cpu" or engine == "stacked":
            return stacked
        return _train_stacked_or_in_sequence(stacked, jobs, groups)
    if engine == "processes" and target.type != "cpu":
        raise PlanError(
            f"engine: 'processes' computes on the CPU, but the device is {target}; choose the "
            "device 'cpu' or the engine 'auto'"
        )
    if needs_two_examples(structure):
        for one in groups:
            check_batches(one.clients, recipe)
    if engine == "auto" and target.type != "cpu" and can_train_side_by_side(structure, recipe):
        return train_side_by_side(structure, jobs, groups)
    train_group = _group_trainer(engine, structure, target, worker_count, chunk)
    return _train_groups_in_turn(train_group, jobs, groups)


def _group_trainer(
    engine: Engine,
    structure: nn.Module,
    device: torch.device,
    workers: int,
    chunk: int | None,
) -> GroupTrainer:
    """Return what trains one group, one client or worker process after the other."""
    if engine == "processes":
        return partial(_train_in_processes, workers=workers, chunk=chunk)
    if engine == "auto" and _may_gain_from_processes(structure, device, workers):
        return partial(_train_until_workers_are_ready, workers=workers, chunk=chunk)
    return train_sequentially


def _settled_device(
    build_model: BuildModel,
    groups: Sequence[TrainingGroup],
    recipe: Recipe,
    device: torch.device | str,
    engine: Engine,
    chunk: int | None,
) -> torch.device:
    """Return the device to train on; the choice of "auto" depends on all groups."""
    clients = [client for group in groups for client in group.clients]
    can_choose = clients and engine in {"auto", "stacked"} and not _engine_of_crafted(groups)
    if str(device) == "auto" and not can_choose:
        return torch.device("cpu")

    def describe() -> TrainingWork | None:
        passed = sum(len(one.rows) * one.epochs_in(recipe) for one in clients)
        steps = sum(one.steps_in(recipe) for one in clients)
        return describe_training(
            build_model,
            groups[0].pool.inputs,
            recipe,
            clients=len(clients),
            examples=passed / len(clients),
            steps=steps / len(clients),
            chunk=chunk,
        )

    return torch.device(settle_device(str(device), describe))


def describe_training(
    build_model: BuildModel,
    inputs: Tensor,
    recipe: Recipe,
    *,
    clients: int,
    examples: float,
    steps: float,
    chunk: int | None = None,
    are_jobs: bool = False,
    read: float = 0.0,
    times: int = 1,
) -> TrainingWork | None:
    """Describe the training of alike clients, to choose the device for it.

    Args:
        build_model: builds the architecture.
        inputs: examples such as those they train on, one or more.
        recipe: how they train.
        clients: their number.
        examples: examples that each passes, with their repetitions.
        steps: steps of each.
        chunk: clients that a GPU trains at once; None = as many as fit.
        are_jobs: whether they are trained in jobs, which worker processes share.
        read: examples whose outputs are computed after the training of each.
        times: how often such clients are trained.

    Returns:
        the description; None if the network cannot be run.

    """
    counts, structure = count_step(build_model, inputs), model_structure(build_model)
    if counts is None:
        return None
    cpu = torch.device("cpu")
    return TrainingWork(
        counts,
        clients=clients,
        examples=examples,
        steps=steps,
        chunk=LARGEST_CHUNK["cuda"] if chunk is None else chunk,
        update_bytes=sum(
            one.numel() * one.element_size() for one in sent_tensors(structure).values()
        ),
        is_stacked_on_cpu=_gains_from_stacking(structure, cpu),
        on_gpu=_engine_on_gpu(structure, recipe),
        in_workers=are_jobs
        or (
            not _gains_from_stacking(structure, cpu)
            and _may_gain_from_processes(structure, cpu, workers=2)
        ),
        read=read,
        times=times,
    )


def _engine_on_gpu(structure: nn.Module, recipe: Recipe) -> GpuEngine:
    """Return how `train_groups` trains several clients on a GPU."""
    if _obstacle_to_stacking(structure, recipe) is None:
        return "stacked"
    return "side by side" if can_train_side_by_side(structure, recipe) else "one by one"


def _engine_of_crafted(groups: Sequence[TrainingGroup]) -> Engine | None:
    """Return the engine that trains on crafted gradients; None if there are none."""
    crafted = (client.crafted for one in groups for client in one.clients)
    return "sequential" if any(one is not None for one in crafted) else None


def check_batches(clients: Sequence[ClientTask], recipe: Recipe) -> None:
    """Check that no client trains on batches of one example, as a batch norm cannot.

    Raises:
        PlanError: if one does.

    """
    for client in clients:
        if min(len(client.rows), recipe.batch) == 1:
            raise PlanError(
                f"{client.name} trains on batches of one example, which a batch norm cannot "
                "normalise: give each client two examples or more, and set training.batch to "
                "2 or more"
            )


def check_private_steps(recipe: Recipe, model: nn.Module) -> None:
    """Refuse DP-SGD for a network whose changes its clipped gradients do not cover.

    Raises:
        PlanError: if it has a batch norm or other buffers that are sent.

    """
    if recipe.private_steps is None:
        return
    if has_batch_norm(model):
        raise PlanError(
            "dp_sgd clips the gradient of each example, but the model's batch norm mixes the "
            "examples of a batch: replace it by a group norm (nn.GroupNorm), or choose another "
            "model"
        )
    if buffers := sent_buffers(model):
        raise PlanError(
            "dp_sgd adds noise to gradients alone, but the model's buffer "
            f"{next(iter(buffers))} is sent too, without noise: register it with "
            "persistent=False if training does not change it, or choose another model"
        )


def _training_job(
    build_model: BuildModel,
    group: TrainingGroup,
    recipe: Recipe,
    round: int,
    device: torch.device,
) -> TrainingJob:
    has_corrections = any(client.correction is not None for client in group.clients)
    return TrainingJob(
        build_model, group.start, group.pool, recipe, group.seed, round, device, has_corrections
    )


def _chunk_that_fits(
    model: nn.Module, jobs: Sequence[TrainingJob], groups: Sequence[TrainingGroup]
) -> int:
    """Return how many clients to stack; all jobs have start weights of one size."""
    clients = [client for group in groups for client in group.clients]
    if not clients:
        return 1
    size = clients_that_fit(model, jobs[0], clients)
    if jobs[0].device.type == "cpu":
        return size
    # Chunks of one size, as a GPU records the steps of the first for all of them.
    return ceil(len(clients) / ceil(len(clients) / size))


def _train_groups_in_turn(
    train_group: GroupTrainer, jobs: Sequence[TrainingJob], groups: Sequence[TrainingGroup]
) -> Iterator[ClientResult]:
    for job, group in zip(jobs, groups, strict=True):
        yield from train_group(job, group.clients)


def _train_stacked_or_in_sequence(
    stacked: Iterator[ClientResult],
    jobs: Sequence[TrainingJob],
    groups: Sequence[TrainingGroup],
) -> Iterator[ClientResult]:
    """Train stacked; from the first stack that a GPU cannot compute, in sequence."""
    done = 0
    try:
        for result in stacked:
            yield result
            done += 1
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        warnings.warn(
            f"clients train one by one, as they cannot be stacked on this GPU: {reason}",
            stacklevel=2,
        )
        yield from train_left_sequentially(jobs, groups, done)


def _gains_from_stacking(model: nn.Module, device: torch.device) -> bool:
    """Return whether stacking saves time, if the network can be stacked.

    On a CPU, stacked convolutions are no faster and stacked embeddings slower (0.7 times).
    """
    return device.type != "cpu" or is_mlp_with_dropout(model)


def _runs_stacked(model: nn.Module, groups: Sequence[TrainingGroup]) -> bool:
    """Return whether a network without known obstacles can be stacked, by a try."""
    if is_mlp_with_dropout(model) or not groups:
        return True
    return runs_under_vmap(model, groups[0].pool.inputs)


def _obstacle_to_stacking(model: nn.Module, recipe: Recipe) -> str | None:
    """Return what cannot be stacked about a network, and why; None if it can be."""
    if is_mlp_with_dropout(model):
        return None
    if has_dropout(model):
        return (
            "a model with dropout unless it is an MLP, because the dropout masks of clients "
            "would not be independent"
        )
    if has_batch_norm(model) or sent_buffers(model):
        return "a model with buffers or a batch norm, which mixes the examples of a batch"
    if not can_write_layers_out(model):
        return (
            "a recurrent layer or a table with these settings, which torch runs for one client "
            "at a time"
        )
    if recipe.private_steps is not None and (is_recurrent(model) or has_embedding(model)):
        return (
            "a recurrent network or one with word vectors under dp_sgd, as it would keep a "
            "table for each example"
        )
    return None


def _may_gain_from_processes(model: nn.Module, device: torch.device, workers: int) -> bool:
    """Return whether worker processes may save time.

    Sending an embedding back takes as long as training it with sparse steps. A recurrent
    network on top makes steps longer. Two workers then take 1 / 1.8 of the time for clients
    with 3,000 windows of `lstm` (867 thousand parameters), 1 / 1.5 for 600 and 1 / 1.25 for
    100. For 32 they take 1.2 times as long, by the processor time of all processes.
    """
    return (
        workers > 1
        and device.type == "cpu"
        and processes.are_supported()
        and (is_recurrent(model) or not has_embedding(model))
    )


def _train_in_processes(
    job: TrainingJob, clients: Sequence[ClientTask], workers: int, chunk: int | None
) -> Iterator[ClientResult]:
    if clients:
        worker_pool = processes.acquire_for_training(job, workers)
        yield from worker_pool.train(clients, chunk or CLIENTS_PER_WORKER * workers)


def _train_until_workers_are_ready(
    job: TrainingJob,
    clients: Sequence[ClientTask],
    workers: int,
    chunk: int | None,
) -> Iterator[ClientResult]:
    """Train clients in this process until workers are ready; start workers if they save time.

    Timing does not affect results: both engines return the same bits.
    """
    results_here = train_sequentially(job, clients)
    for number, client in enumerate(clients):
        rest = clients[number:]
        if processes.are_ready(workers):
            try:
                worker_pool = processes.acquire_for_training(job, workers)
            except PlanError:  # a builder that no other process can import
                processes.disable(workers)
                yield from results_here
                return
            yield from worker_pool.train(rest, chunk or CLIENTS_PER_WORKER * workers)
            return
        began = perf_counter()
        result = next(results_here)
        spent = perf_counter() - began
        idle = 1 - 1 / workers
        if number == 0:
            ahead = sum(len(other.rows) for other in rest) / len(client.rows)
            processes.record_saving(spent * ahead * idle, workers)
        yield result
