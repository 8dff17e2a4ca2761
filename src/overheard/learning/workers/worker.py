"""What a worker process hears from, and answers to, the one that started it: in pickles."""

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
"""Any numbers: the types of weights are those of the model."""


LOSS = "loss"
"""The name under which a trained member's loss is answered, in float64."""

DELTA = "delta/"
"""Stands before the name of each weight whose change a trained member is answered with."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a file, which worker processes map into their memory instead of copying."""

    path: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    def mapped(self) -> torch.Tensor:
        """The tensor; the file may be unlinked once this is done."""
        size = prod(self.shape)
        if not size:
            return torch.empty(self.shape, dtype=self.dtype)
        flat = torch.from_file(self.path, shared=False, size=size, dtype=self.dtype)
        return flat.view(self.shape)


@dataclass(frozen=True, slots=True)
class TakePool:
    """From now on, rows are rows of these examples."""

    inputs: StoredTensor
    labels: StoredTensor


@dataclass(frozen=True, slots=True)
class TakeLesson:
    """From now on, members follow this lesson."""

    build_model: BuildModel
    start: Mapping[str, Array]
    recipe: Recipe
    seed: Seed
    round: int


@dataclass(frozen=True, slots=True)
class Train:
    """Train this member."""

    name: str
    rows: Array


@dataclass(frozen=True, slots=True)
class Do:
    """Do this job with these tensors."""

    job: Job
    tensors: Mapping[str, StoredTensor]


@dataclass(frozen=True, slots=True)
class Ready:
    """Up and running, or what was to be taken is taken."""


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """What a tensor is called and looks like, whose bytes follow."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Did:
    """A job is done, or a member trained; the bytes of each of these follow, in this order."""

    tensors: tuple[NamedTensor, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be done, and why."""

    reason: str


Request = TakePool | TakeLesson | Train | Do
Answer = Ready | Did | Failed


def serve(handle: int, core: int | None) -> None:
    """Answer one request after the other until the other end of the connection is closed.

    However the other end goes, and whatever is under way then, it is the end and no error.

    Args:
        handle: the inherited end of the connection.
        core: the one core to run on; None leaves that to the system.

    """
    if core is not None:
        os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    pool: Examples | None = None
    learner: Learner | None = None
    with Connection(handle) as parent, suppress(EOFError, ConnectionError):
        parent.send(Ready())
        while True:
            try:
                request = parent.recv()
                match request:
                    case TakePool():
                        pool = Examples(request.inputs.mapped(), request.labels.mapped())
                        learner = None
                        parent.send(Ready())
                    case TakeLesson():
                        model = fresh(request.build_model, request.seed)
                        learner = Learner(_lesson(request, pool), model)
                        parent.send(Ready())
                    case Train():
                        _give(parent, _trained(learner, request))
                    case Do():
                        mapped = {name: one.mapped() for name, one in request.tensors.items()}
                        _give(parent, request.job.run(mapped))
            except (EOFError, ConnectionError):
                raise
            # Whatever a user's model raises is for the parent to tell.
            except Exception:
                parent.send(Failed(traceback.format_exc()))


def _lesson(request: TakeLesson, pool: Examples | None) -> Lesson:
    assert pool is not None, "the pool is sent before any lesson"
    start = {name: torch.from_numpy(array.copy()) for name, array in request.start.items()}
    device = torch.device("cpu")
    return Lesson(
        request.build_model, start, pool, request.recipe, request.seed, request.round, device
    )


def _trained(learner: Learner | None, request: Train) -> Mapping[str, torch.Tensor]:
    assert learner is not None, "a lesson is sent before any member"
    trained = learner.train(Member(request.name, torch.from_numpy(request.rows.copy())))
    delta = {DELTA + name: part for name, part in trained.delta.items()}
    return {LOSS: torch.tensor(trained.loss, dtype=torch.float64), **delta}


def _give(parent: Connection, tensors: Mapping[str, torch.Tensor]) -> None:
    done = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    told = (NamedTensor(n, tuple(tensor.shape), tensor.dtype) for n, tensor in done.items())
    parent.send(Did(tuple(told)))
    for tensor in done.values():
        parent.send_bytes(tensor.numpy().reshape(-1).data)
