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
from overheard.learning.cohort import Lesson, Member
from overheard.learning.engines.sequential import Learner
from overheard.learning.initial import fresh
from overheard.learning.workers.job import Job

Array = np.ndarray[Any, np.dtype[Any]]
"""An array of any dtype, as weights have the dtype of the model."""


LOSS = "loss"
"""Name of the tensor that holds a trained client's loss, in float64."""

DELTA = "delta/"
"""Prefix of the names of tensors that hold a trained client's changes of weights."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a file, which worker processes memory-map instead of copying."""

    path: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    def mapped(self) -> torch.Tensor:
        """Memory-map the tensor; afterwards the file may be unlinked."""
        size = prod(self.shape)
        if not size:
            return torch.empty(self.shape, dtype=self.dtype)
        flat = torch.from_file(self.path, shared=False, size=size, dtype=self.dtype)
        return flat.view(self.shape)


@dataclass(frozen=True, slots=True)
class TakePool:
    """Request to use this pool of examples from now on."""

    inputs: StoredTensor
    labels: StoredTensor


@dataclass(frozen=True, slots=True)
class TakeLesson:
    """Request to train clients by this job from now on."""

    build_model: BuildModel
    start: Mapping[str, Array]
    recipe: Recipe
    seed: Seed
    round: int


@dataclass(frozen=True, slots=True)
class Train:
    """Request to train this client."""

    name: str
    rows: Array


@dataclass(frozen=True, slots=True)
class Do:
    """Request to run this job with these tensors."""

    job: Job
    tensors: Mapping[str, StoredTensor]


@dataclass(frozen=True, slots=True)
class Ready:
    """Response: the worker is started, or has loaded the pool or training job."""


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """Name, shape and dtype of a tensor whose bytes follow."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Did:
    """Response to a finished request: the bytes of these tensors follow, in this order."""

    tensors: tuple[NamedTensor, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """Response to a failed request, with the traceback."""

    reason: str


Request = TakePool | TakeLesson | Train | Do
Answer = Ready | Did | Failed


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
    trainer: Learner | None = None
    with Connection(handle) as parent, suppress(EOFError, ConnectionError):
        parent.send(Ready())
        while True:
            try:
                request = parent.recv()
                match request:
                    case TakePool():
                        pool = Examples(request.inputs.mapped(), request.labels.mapped())
                        trainer = None
                        parent.send(Ready())
                    case TakeLesson():
                        model = fresh(request.build_model, request.seed)
                        trainer = Learner(_lesson(request, pool), model)
                        parent.send(Ready())
                    case Train():
                        _give(parent, _trained(trainer, request))
                    case Do():
                        mapped = {name: one.mapped() for name, one in request.tensors.items()}
                        _give(parent, request.job.run(mapped))
            except (EOFError, ConnectionError):
                raise
            # The parent reports any exception that a user's model raises.
            except Exception:
                parent.send(Failed(traceback.format_exc()))


def _lesson(request: TakeLesson, pool: Examples | None) -> Lesson:
    assert pool is not None, "the pool is sent before any training job"
    start = {name: torch.from_numpy(array.copy()) for name, array in request.start.items()}
    device = torch.device("cpu")
    return Lesson(
        request.build_model, start, pool, request.recipe, request.seed, request.round, device
    )


def _trained(trainer: Learner | None, request: Train) -> Mapping[str, torch.Tensor]:
    assert trainer is not None, "a training job is sent before any client"
    trained = trainer.train(Member(request.name, torch.from_numpy(request.rows.copy())))
    delta = {DELTA + name: part for name, part in trained.delta.items()}
    return {LOSS: torch.tensor(trained.loss, dtype=torch.float64), **delta}


def _give(parent: Connection, tensors: Mapping[str, torch.Tensor]) -> None:
    sent = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    headers = (NamedTensor(n, tuple(tensor.shape), tensor.dtype) for n, tensor in sent.items())
    parent.send(Did(tuple(headers)))
    for tensor in sent.values():
        parent.send_bytes(tensor.numpy().reshape(-1).data)
