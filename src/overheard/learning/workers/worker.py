"""The requests that a worker process serves, and its responses, both as pickles."""

import os
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.engines.sequential import SequentialTrainer
from overheard.learning.initialization import fresh_model
from overheard.learning.training_job import ClientTask, TrainingJob
from overheard.learning.workers.job import Job

Array = np.ndarray[Any, np.dtype[Any]]
"""An array of any dtype, as weights have the dtype of the model."""


LOSS_KEY = "loss"
"""Name of the tensor that holds a trained client's loss, in float64."""

DELTA_PREFIX = "delta/"
"""Prefix of the names of tensors that hold a trained client's changes of weights."""


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


@dataclass(frozen=True, slots=True)
class LoadExamples:
    """Request to use this pool of examples, with these `Examples.tensors`, from now on."""

    tensors: tuple[StoredTensor, ...]


@dataclass(frozen=True, slots=True)
class LoadTrainingJob:
    """Request to train clients by this job from now on."""

    build_model: BuildModel
    start: Mapping[str, Array]
    recipe: Recipe
    seed: Seed
    round: int
    has_corrections: bool = False


@dataclass(frozen=True, slots=True)
class TrainClient:
    """Request to train this client."""

    name: str
    rows: Array
    epochs: int | None = None
    correction: Mapping[str, Array] | None = None


@dataclass(frozen=True, slots=True)
class RunJob:
    """Request to run this job with these tensors."""

    job: Job
    tensors: Mapping[str, StoredTensor]


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """Response: the worker is started, or has loaded the pool or training job."""


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """Name, shape and dtype of a tensor whose bytes follow."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class TensorsFollow:
    """Response to a finished request: the bytes of these tensors follow, in this order."""

    tensors: tuple[TensorHeader, ...]


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """Response to a failed request, with the traceback."""

    reason: str


WorkerRequest = LoadExamples | LoadTrainingJob | TrainClient | RunJob
WorkerResponse = WorkerReady | TensorsFollow | WorkerFailure


def serve(handle: int, core: int | None) -> None:
    """Serve one request after the other until the parent closes the connection.

    A lost connection ends the worker without an error, even during a request.

    Args:
        handle: file descriptor of the inherited end of the connection.
        core: core to run on; None = no affinity.

    """
    if core is not None:
        os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    pool: Examples | None = None
    trainer: SequentialTrainer | None = None
    with Connection(handle) as parent, suppress(EOFError, ConnectionError):
        parent.send(WorkerReady())
        while True:
            try:
                request = parent.recv()
                match request:
                    case LoadExamples():
                        pool = Examples(*(one.map_tensor() for one in request.tensors))
                        trainer = None
                        parent.send(WorkerReady())
                    case LoadTrainingJob():
                        model = fresh_model(request.build_model, Seed(0))
                        trainer = SequentialTrainer(_training_job(request, pool), model)
                        parent.send(WorkerReady())
                    case TrainClient():
                        _send_tensors(parent, _train_client(trainer, request))
                    case RunJob():
                        mapped = {
                            name: one.map_tensor() for name, one in request.tensors.items()
                        }
                        _send_tensors(parent, request.job.run(mapped))
            except (EOFError, ConnectionError):
                raise
            # The parent reports any exception that a user's model raises.
            except Exception:
                parent.send(WorkerFailure(traceback.format_exc()))


def _training_job(request: LoadTrainingJob, pool: Examples | None) -> TrainingJob:
    assert pool is not None, "the pool is sent before any training job"
    start = {name: torch.from_numpy(array.copy()) for name, array in request.start.items()}
    device = torch.device("cpu")
    return TrainingJob(
        request.build_model,
        start,
        pool,
        request.recipe,
        request.seed,
        request.round,
        device,
        request.has_corrections,
    )


def _train_client(
    trainer: SequentialTrainer | None, request: TrainClient
) -> Mapping[str, torch.Tensor]:
    assert trainer is not None, "a training job is sent before any client"
    correction = request.correction
    trained = trainer.train(
        ClientTask(
            request.name,
            torch.from_numpy(request.rows.copy()),
            request.epochs,
            None
            if correction is None
            else {name: torch.from_numpy(array.copy()) for name, array in correction.items()},
        )
    )
    delta = {DELTA_PREFIX + name: part for name, part in trained.delta.items()}
    return {LOSS_KEY: torch.tensor(trained.loss, dtype=torch.float64), **delta}


def _send_tensors(parent: Connection, tensors: Mapping[str, torch.Tensor]) -> None:
    sent = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    headers = (TensorHeader(n, tuple(tensor.shape), tensor.dtype) for n, tensor in sent.items())
    parent.send(TensorsFollow(tuple(headers)))
    for tensor in sent.values():
        parent.send_bytes(tensor.numpy().reshape(-1).data)
