"""What worker processes do: they run jobs and train clients."""

import gc
import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from multiprocessing import parent_process
from multiprocessing.queues import SimpleQueue
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from threading import Thread
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from overheard.core.compute_settings import become_worker
from overheard.core.defense import BuildModel as ModelBuilder
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.engines.sequential import SequentialTrainer
from overheard.learning.initialization import fresh_model
from overheard.learning.training_job import ClientTask, TrainingJob
from overheard.learning.workers.job import Job

Array = np.ndarray[Any, np.dtype[Any]]
"""An array of any dtype, as weights have the dtype of the model."""


LOSS, ROWS = "loss", "rows"
"""Names of the tensors with a client's loss in float64, and with its rows of the examples."""

DELTA, START, EXAMPLES, CORRECTION = "delta/", "start/", "examples/", "correction/"
"""Prefixes of the names of changes of weights, of weights at the start, of the examples of all
clients, and of the corrections of a client's gradient."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a file, which worker processes memory-map instead of copying."""

    path: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    def map_tensor(self) -> torch.Tensor:
        """Memory-map the tensor; afterwards the file may be unlinked."""
        size = prod(self.shape)
        if not size:
            return torch.empty(self.shape, dtype=self.dtype)
        flat = torch.from_file(self.path, shared=False, size=size, dtype=self.dtype)
        return flat.view(self.shape)


def store_tensor(tensor: Shaped[Tensor, "..."], path: Path) -> StoredTensor:
    """Write a tensor to a file that worker processes can memory-map."""
    tensor.detach().cpu().contiguous().numpy().tofile(path)
    return StoredTensor(str(path), tuple(tensor.shape), tensor.dtype)


@final
@dataclass(frozen=True, slots=True)
class BuildModel(Job):
    """Builds a model, so that an error of its builder is found before clients train.

    Args:
        build_model: builds the architecture.

    """

    build_model: ModelBuilder

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Build the model; return no tensor."""
        fresh_model(self.build_model, Seed(0))
        return {}


@final
@dataclass(frozen=True, slots=True)
class TrainClient(Job):
    """Trains a client; returns the changes of its weights, and its loss.

    Args:
        key: the same for all clients of one training job, which share a trainer.
        build_model: builds the architecture.
        recipe: how each client trains.
        seed: root of the order of batches.
        round: number of the round.
        has_corrections: whether the gradients of any client are corrected.
        name: name of the client.
        epochs: its passes over its rows; None = those of the recipe.

    """

    key: int
    build_model: ModelBuilder
    recipe: Recipe
    seed: Seed
    round: int
    has_corrections: bool
    name: str
    epochs: int | None

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Train the client."""
        if not _LAST or _LAST[0][0] != self.key:
            _LAST[:] = [(self.key, self._trainer(tensors))]
        correction = part_of(tensors, CORRECTION) or None
        trained = _LAST[0][1].train(
            ClientTask(self.name, tensors[ROWS], self.epochs, correction)
        )
        loss = torch.tensor(trained.loss, dtype=torch.float64)
        return {LOSS: loss, **{DELTA + name: part for name, part in trained.delta.items()}}

    def _trainer(self, tensors: Mapping[str, Tensor]) -> SequentialTrainer:
        job = TrainingJob(
            self.build_model,
            part_of(tensors, START),
            Examples(*part_of(tensors, EXAMPLES).values()),
            self.recipe,
            self.seed,
            self.round,
            torch.device("cpu"),
            self.has_corrections,
        )
        return SequentialTrainer(job, fresh_model(self.build_model, Seed(0)))


_LAST: list[tuple[int, SequentialTrainer]] = []
"""Key and trainer of the last training job of this worker."""


def part_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, by the rest of their names."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """Result of a failed task: the traceback."""

    reason: str


def prepare_worker(cores: "SimpleQueue[int]") -> None:
    """Compute on one thread, and end with the process that started the worker.

    Args:
        cores: a core for each worker; empty = any core.

    """
    if not cores.empty():
        os.sched_setaffinity(0, {cores.get()})
    # Objects of the imports are left alone, so that workers share their memory.
    gc.freeze()
    # In a process group of its own, so that signals to the caller's group do not reach it.
    os.setpgid(0, 0)
    torch.set_num_threads(1)
    # Not in the environment that workers start in: the main process has that for a while, and
    # would find no GPU from then on, if it asked for one meanwhile.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    become_worker()
    Thread(target=_end_with_parent, daemon=True).start()


def pickle_request(job: Job, tensors: Mapping[str, StoredTensor]) -> bytes:
    """Pickle a request to run a job with these tensors."""
    return bytes(ForkingPickler.dumps((job, tensors)))


def answer(request: bytes) -> Mapping[str, Array] | WorkerFailure:
    """Run the job of a request. The caller need not be able to import the error it raises."""
    try:
        job, stored = ForkingPickler.loads(request)
        done = job.run({name: one.map_tensor() for name, one in stored.items()})
        return {name: tensor.detach().cpu().numpy() for name, tensor in done.items()}
    # The caller reports any exception that a user's model raises.
    except Exception:
        return WorkerFailure(traceback.format_exc())


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
