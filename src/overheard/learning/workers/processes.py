"""The pool of worker processes, usually one per core, that run the sequential engine."""

import math
import os
import tempfile
import weakref
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import final

from torch import Tensor

from overheard.core.errors import PlanError, WorkerError
from overheard.core.examples import Examples
from overheard.learning.cohort import Lesson, Member, Trained
from overheard.learning.threads import cores
from overheard.learning.workers.dispatch import Answered, Dispatch
from overheard.learning.workers.job import Done, WorkerTask
from overheard.learning.workers.worker import DELTA, LOSS, Failed, TakeLesson, TakePool, Train
from overheard.learning.workers.worker_process import (
    WorkerProcess,
    import_path,
    stored,
    written,
)

WORTH_CALLING = 0.5
"""Seconds to be saved before workers are started. Starting takes them two or three seconds, in
which the caller continues to train; then they stay for the following rounds."""


def are_possible() -> bool:
    """Return whether a child process can inherit a connection here (not on Windows)."""
    return os.name == "posix"


def are_ready(workers: int) -> bool:
    """Return whether an idle pool of this many workers has started."""
    return workers in _IDLE and _IDLE[workers].is_ready()


def miss(seconds: float, workers: int) -> None:
    """Record the seconds that this many workers would have saved.

    Once the total is large enough, they are started in the background.
    """
    _MISSED[workers] = _MISSED.get(workers, 0.0) + seconds
    if _MISSED[workers] >= WORTH_CALLING and workers not in _IDLE:
        _IDLE[workers] = Crew(workers)


def do_without(workers: int) -> None:
    """Never start this many workers again, because the model cannot be sent to them."""
    _MISSED[workers] = -math.inf


def hire(lesson: Lesson, workers: int) -> "Crew":
    """Acquire this many workers and load the training job; the caller must train right away.

    Raises:
        PlanError: if this system supports no workers, or the model cannot be sent to them.

    """
    worker_pool = muster(workers)
    try:
        worker_pool.take(lesson)
    except BaseException:
        worker_pool.stop()
        raise
    return worker_pool


def muster(workers: int) -> "Crew":
    """Acquire this many workers, idle or new; the caller must use them right away.

    Raises:
        PlanError: if this system supports no workers.

    """
    if not are_possible():
        raise PlanError(
            "engine: 'processes' needs Linux or macOS; choose 'auto' or 'sequential'"
        )
    worker_pool = _IDLE.pop(workers, None)
    if worker_pool is not None and worker_pool.path != import_path():
        # These workers might not find modules of the new path.
        worker_pool.stop()
        worker_pool = None
    return worker_pool or Crew(workers)


@final
class Crew:
    """Worker processes that serve one caller at a time and are reused."""

    def __init__(self, workers: int) -> None:
        self.path = import_path()
        pinned = _allowed_cores() if workers == cores() else []
        self._workers = [
            WorkerProcess(pinned[number] if pinned else None) for number in range(workers)
        ]
        self._end = weakref.finalize(self, _end, self._workers)
        self._pool: tuple[weakref.ref[Tensor], weakref.ref[Tensor]] | None = None
        self._starting = list(self._workers)

    def is_ready(self) -> bool:
        """Return whether every worker is started or dead; it then responds at once."""
        return all(worker.connection.poll() for worker in self._starting)

    def take(self, lesson: Lesson) -> None:
        """Load the training job of the next clients into every worker."""
        self._greet()
        try:
            start = {name: weight.cpu().numpy() for name, weight in lesson.start.items()}
            request = written(
                TakeLesson(lesson.build_model, start, lesson.recipe, lesson.seed, lesson.round)
            )
        # A user's object may raise any exception while it is pickled.
        except Exception as error:
            raise _unsendable(str(error)) from error
        self._share(lesson.pool)
        for worker in self._workers:
            worker.send(request)
        for worker in self._workers:
            response = worker.answer("loading the training job")
            if isinstance(response, Failed):
                raise _unsendable(response.reason)

    def train(self, members: Sequence[Member], window: int) -> Iterator[Trained]:
        """Train clients, and yield results in input order.

        The workers are released before the last result is yielded, so a caller may stop after
        it. A caller that stops earlier, also by Ctrl-C, ends the workers.

        Args:
            members: the clients to train.
            window: most clients in training, or trained and not yet taken, at once.

        Raises:
            WorkerError: if a worker dies, or training fails there.

        """
        dispatcher = Dispatch(self._workers)
        waiting: deque[tuple[Member, Future[Answered]]] = deque()
        finished = False
        try:
            for client in members:
                if len(waiting) == window:
                    yield _trained(*waiting.popleft())
                request = written(Train(client.name, client.rows.cpu().numpy()))
                future = dispatcher.submit(request, f"training {client.name}")
                waiting.append((client, future))
            while len(waiting) > 1:
                yield _trained(*waiting.popleft())
            last = [_trained(*each) for each in waiting]
            finished = True
        finally:
            dispatcher.close(finished)
            self.rest() if finished else self.stop()
        yield from last

    def work(self, tasks: Iterable[tuple[int, WorkerTask]]) -> Generator[Done, None, None]:
        """Run numbered tasks, and yield results as they finish, in any order.

        A worker that dies is replaced, and its task is tried again. A caller that stops before
        the last result, also by Ctrl-C, ends the workers.

        Raises:
            WorkerError: if a worker died in every attempt at one task.

        """
        dispatcher, before = Dispatch(self._workers), list(self._workers)
        finished = False
        try:
            self._greet()
            yield from dispatcher.run(tasks)
            finished = True
        finally:
            dispatcher.close(finished)
            if self._workers != before:
                # New workers have no pool of examples.
                self._pool = None
            self.rest() if finished else self.stop()

    def rest(self) -> None:
        """Keep the pool for the next call, or stop it if one of this size is idle already."""
        if _IDLE.setdefault(len(self._workers), self) is not self:
            self.stop()

    def stop(self) -> None:
        """End every process and wait for it; done at the latest when Python exits."""
        self._end()

    def _greet(self) -> None:
        """Wait until every worker has started."""
        while self._starting:
            self._starting[0].answer("starting")
            self._starting.pop(0)

    def _share(self, pool: Examples) -> None:
        """Load the pool of examples into every worker, unless it is loaded already."""
        loaded = None if self._pool is None else tuple(tensor() for tensor in self._pool)
        if loaded is not None and loaded[0] is pool.inputs and loaded[1] is pool.labels:
            return
        with tempfile.TemporaryDirectory(prefix="overheard-") as folder:
            request = written(
                TakePool(
                    stored(pool.inputs, Path(folder) / "inputs"),
                    stored(pool.labels, Path(folder) / "labels"),
                )
            )
            for worker in self._workers:
                worker.send(request)
            for worker in self._workers:
                response = worker.answer("loading the pool of examples")
                if isinstance(response, Failed):
                    raise WorkerError(
                        f"a worker could not load the pool of examples:\n{response.reason}"
                    )
        self._pool = (weakref.ref(pool.inputs), weakref.ref(pool.labels))


def _trained(client: Member, future: Future[Answered]) -> Trained:
    """Wait for the result of a client."""
    output = future.result()
    if isinstance(output, Failed):
        raise WorkerError(f"training {client.name} failed in a worker:\n{output.reason}")
    delta = {
        name.removeprefix(DELTA): part
        for name, part in output.items()
        if name.startswith(DELTA)
    }
    return Trained(client, delta, float(output[LOSS]))


_IDLE: dict[int, Crew] = {}
"""Idle pools by number of workers; starting a new one takes seconds."""

_MISSED: dict[int, float] = {}
"""Seconds that a pool would have saved this process so far, by number of workers."""


def _allowed_cores() -> list[int]:
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return []


def _unsendable(reason: str) -> PlanError:
    return PlanError(
        "model: it cannot be sent to worker processes; define its builder at the top of an "
        f"importable module, or choose the engine 'auto' or 'sequential' ({reason})"
    )


def _kill(workers: Sequence[WorkerProcess]) -> None:
    """Kill the processes, and wait for them so that none becomes a zombie."""
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.process.wait()


def _end(workers: Sequence[WorkerProcess]) -> None:
    _kill(workers)
    for worker in workers:
        worker.connection.close()
