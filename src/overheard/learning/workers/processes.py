"""The pool of worker processes, usually one per core, that run the sequential engine."""

import math
import operator
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
from overheard.learning.threads import available_cores
from overheard.learning.training_job import ClientResult, ClientTask, TrainingJob
from overheard.learning.workers import starter
from overheard.learning.workers.dispatcher import Dispatcher, WorkerOutput
from overheard.learning.workers.job import TaskResult, WorkerTask
from overheard.learning.workers.starter import import_path
from overheard.learning.workers.worker import (
    DELTA_PREFIX,
    LOSS_KEY,
    LoadExamples,
    LoadTrainingJob,
    TrainClient,
    WorkerFailure,
)
from overheard.learning.workers.worker_process import (
    WorkerProcess,
    pickle_request,
    store_tensor,
)

MIN_SAVED_SECONDS = 0.5
"""Seconds to be saved before workers are started. Starting takes them two or three seconds, in
which the caller continues to train; then they stay for the following rounds."""

PREPARED_SHARE = 0.2
"""Share of these seconds that is enough once workers can be forked: that takes milliseconds."""


def are_supported() -> bool:
    """Return whether a child process can inherit a connection here (not on Windows)."""
    return os.name == "posix"


def are_ready(workers: int) -> bool:
    """Return whether an idle pool of this many workers has started.

    Once it would have saved enough, it is started in the background. It is not forked from a
    starter that still imports, as the caller would wait for that.
    """
    if workers not in _IDLE and _are_worthwhile(workers) and not starter.is_preparing():
        _IDLE[workers] = WorkerPool(workers)
    return workers in _IDLE and _IDLE[workers].is_ready()


def record_saving(seconds: float, workers: int) -> None:
    """Record the seconds that this many workers would have saved.

    Once the total is large enough, the starter begins, from which `are_ready` forks them.
    """
    _SAVABLE_SECONDS[workers] = _SAVABLE_SECONDS.get(workers, 0.0) + seconds
    if _are_worthwhile(workers):
        starter.start()


def disable(workers: int) -> None:
    """Never start this many workers again, because the model cannot be sent to them."""
    _SAVABLE_SECONDS[workers] = -math.inf


def stop_idle(workers: int) -> None:
    """End the idle pool of this many workers, if there is one, with all that it remembers."""
    if (worker_pool := _IDLE.pop(workers, None)) is not None:
        worker_pool.stop()


def acquire_for_training(job: TrainingJob, workers: int) -> "WorkerPool":
    """Acquire this many workers and load the training job; the caller must train right away.

    Raises:
        PlanError: if this system supports no workers, or the model cannot be sent to them.

    """
    worker_pool = acquire(workers)
    try:
        worker_pool.load_job(job)
    except BaseException:
        worker_pool.stop()
        raise
    return worker_pool


def acquire(workers: int) -> "WorkerPool":
    """Acquire this many workers, idle or new; the caller must use them right away.

    Raises:
        PlanError: if this system supports no workers.

    """
    if not are_supported():
        raise PlanError(
            "engine: 'processes' needs Linux or macOS; choose 'auto' or 'sequential'"
        )
    worker_pool = _IDLE.pop(workers, None)
    if worker_pool is not None and worker_pool.import_path != import_path():
        # These workers might not find modules of the new path.
        worker_pool.stop()
        worker_pool = None
    return worker_pool or WorkerPool(workers)


@final
class WorkerPool:
    """Worker processes that serve one caller at a time and are reused."""

    def __init__(self, workers: int) -> None:
        self.import_path = import_path()
        pinned = _allowed_cores() if workers == available_cores() else []
        self._workers = list[WorkerProcess]()
        # Before the finalizer of the workers, so that at exit the starter ends after them.
        starter.start()
        # Before the first worker starts, so that Ctrl-C between two starts ends the first.
        self._end = weakref.finalize(self, _end, self._workers)
        for number in range(workers):
            self._workers.append(WorkerProcess(pinned[number] if pinned else None))
        self._pool: tuple[weakref.ref[Tensor], ...] | None = None
        self._starting = list(self._workers)

    def is_ready(self) -> bool:
        """Return whether every worker is started or dead; it then responds at once."""
        return all(worker.connection.poll() for worker in self._starting)

    def load_job(self, job: TrainingJob) -> None:
        """Load the training job of the next clients into every worker."""
        self._wait_until_started()
        try:
            start = {name: weight.cpu().numpy() for name, weight in job.start.items()}
            request = pickle_request(
                LoadTrainingJob(
                    job.build_model,
                    start,
                    job.recipe,
                    job.seed,
                    job.round,
                    job.has_corrections,
                )
            )
        # A user's object may raise any exception while it is pickled.
        except Exception as error:
            raise _unsendable_model_error(str(error)) from error
        self._share_examples(job.pool)
        for worker in self._workers:
            worker.send(request)
        for worker in self._workers:
            response = worker.receive("loading the training job")
            if isinstance(response, WorkerFailure):
                raise _unsendable_model_error(response.reason)

    def train(self, clients: Sequence[ClientTask], window: int) -> Iterator[ClientResult]:
        """Train clients, and yield results in input order.

        The workers are released before the last result is yielded, so a caller may stop after
        it. A caller that stops earlier, also by Ctrl-C, ends the workers.

        Args:
            clients: the clients to train.
            window: most clients in training, or trained and not yet taken, at once.

        Raises:
            WorkerError: if a worker dies, or training fails there.

        """
        dispatcher = Dispatcher(self._workers)
        waiting: deque[tuple[ClientTask, Future[WorkerOutput]]] = deque()
        finished = False
        try:
            for client in clients:
                if len(waiting) == window:
                    yield _client_result(*waiting.popleft())
                request = pickle_request(_training_request(client))
                future = dispatcher.submit(request, f"training {client.name}")
                waiting.append((client, future))
            while len(waiting) > 1:
                yield _client_result(*waiting.popleft())
            last = [_client_result(*each) for each in waiting]
            finished = True
        finally:
            dispatcher.close(finished)
            self.release() if finished else self.stop()
        yield from last

    def run_tasks(
        self, tasks: Iterable[tuple[int, WorkerTask]]
    ) -> Generator[TaskResult, None, None]:
        """Run numbered tasks, and yield results as they finish, in any order.

        A worker that dies is replaced, and its task is tried again. A caller that stops before
        the last result, also by Ctrl-C, ends the workers.

        Raises:
            WorkerError: if a worker died in every attempt at one task.

        """
        dispatcher, before = Dispatcher(self._workers), list(self._workers)
        finished = False
        try:
            self._wait_until_started()
            yield from dispatcher.run(tasks)
            finished = True
        finally:
            dispatcher.close(finished)
            if self._workers != before:
                # New workers have no pool of examples.
                self._pool = None
            self.release() if finished else self.stop()

    def release(self) -> None:
        """Keep the pool for the next call, or stop it if one of this size is idle already."""
        if _IDLE.setdefault(len(self._workers), self) is not self:
            self.stop()

    def stop(self) -> None:
        """End every process and wait for it; done at the latest when Python exits."""
        self._end()

    def _wait_until_started(self) -> None:
        """Wait until every worker has started."""
        while self._starting:
            self._starting[0].receive("starting")
            self._starting.pop(0)

    def _share_examples(self, pool: Examples) -> None:
        """Load the pool of examples into every worker, unless it is loaded already."""
        loaded = None if self._pool is None else tuple(tensor() for tensor in self._pool)
        same = loaded is not None and len(loaded) == len(pool.tensors())
        if same and all(map(operator.is_, loaded or (), pool.tensors())):
            return
        with tempfile.TemporaryDirectory(prefix="overheard-") as folder:
            request = pickle_request(
                LoadExamples(
                    tuple(
                        store_tensor(tensor, Path(folder) / str(place))
                        for place, tensor in enumerate(pool.tensors())
                    )
                )
            )
            for worker in self._workers:
                worker.send(request)
            for worker in self._workers:
                response = worker.receive("loading the pool of examples")
                if isinstance(response, WorkerFailure):
                    raise WorkerError(
                        f"a worker could not load the pool of examples:\n{response.reason}"
                    )
        self._pool = tuple(map(weakref.ref, pool.tensors()))


def _training_request(client: ClientTask) -> TrainClient:
    correction = client.correction
    return TrainClient(
        client.name,
        client.rows.cpu().numpy(),
        client.epochs,
        None
        if correction is None
        else {name: tensor.cpu().numpy() for name, tensor in correction.items()},
    )


def _client_result(client: ClientTask, future: Future[WorkerOutput]) -> ClientResult:
    """Wait for the result of a client."""
    output = future.result()
    if isinstance(output, WorkerFailure):
        raise WorkerError(f"training {client.name} failed in a worker:\n{output.reason}")
    delta = {
        name.removeprefix(DELTA_PREFIX): part
        for name, part in output.items()
        if name.startswith(DELTA_PREFIX)
    }
    return ClientResult(client, delta, float(output[LOSS_KEY]))


_IDLE: dict[int, WorkerPool] = {}
"""Idle pools by number of workers; starting a new one takes seconds."""

_SAVABLE_SECONDS: dict[int, float] = {}
"""Seconds that a pool would have saved this process so far, by number of workers."""


def _are_worthwhile(workers: int) -> bool:
    """Return whether these workers would have saved enough for being started."""
    enough = MIN_SAVED_SECONDS * (PREPARED_SHARE if starter.is_prepared() else 1.0)
    return _SAVABLE_SECONDS.get(workers, -math.inf) >= enough


def _allowed_cores() -> list[int]:
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return []


def _unsendable_model_error(reason: str) -> PlanError:
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
