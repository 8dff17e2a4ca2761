"""The pool of worker processes, usually one per core, that run the sequential engine."""

import math
import operator
import os
import signal
import tempfile
import weakref
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import count
from multiprocessing import current_process
from pathlib import Path
from threading import Thread, main_thread
from typing import final

import torch
from torch import Tensor

from overheard.core.errors import PlanError, WorkerError
from overheard.learning.threads import available_cores
from overheard.learning.training_job import ClientResult, ClientTask, TrainingJob
from overheard.learning.workers import starter
from overheard.learning.workers.job import TaskResult, TensorBundle, WorkerTask
from overheard.learning.workers.starter import WorkerContext, import_path
from overheard.learning.workers.worker import (
    CORRECTION,
    DELTA,
    EXAMPLES,
    LOSS,
    ROWS,
    START,
    Array,
    BuildModel,
    StoredTensor,
    TrainClient,
    WorkerFailure,
    answer,
    part_of,
    pickle_request,
    prepare_worker,
    store_tensor,
)

MIN_SAVED_SECONDS = 0.5
"""Seconds to be saved before workers are started. Starting takes them two or three seconds, in
which the caller continues to train; then they stay for the following rounds."""

RETRIES = 3
"""Retries of a task during which a worker died."""

TASKS_PER_WORKER = 2
"""Pending tasks per worker, so that no worker waits for the caller."""

WorkerOutput = Mapping[str, Array] | WorkerFailure
"""What a worker returns."""


def are_supported() -> bool:
    """Return whether worker processes are supported here.

    They are not on Windows, in a daemon, in a fork of a process that had workers, or once the
    main thread has ended: the standard library then starts none.
    """
    return (
        os.name == "posix"
        and not current_process().daemon
        and not starter.is_in_fork()
        and main_thread().is_alive()
    )


def are_ready(workers: int) -> bool:
    """Return whether an idle pool of this many workers has started.

    Once it would have saved enough, it is started in the background.
    """
    if workers not in _IDLE and _are_worthwhile(workers):
        _IDLE[workers] = WorkerPool(workers)
    # Another thread may acquire it meanwhile.
    worker_pool = _IDLE.get(workers)
    return worker_pool is not None and worker_pool.is_ready()


def record_saving(seconds: float, workers: int) -> None:
    """Record the seconds that this many workers would have saved.

    Once the total is large enough, the process begins from which `are_ready` forks them.
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
            "engine: 'processes' needs Linux or macOS, and a process that is no daemon of "
            "multiprocessing and no fork of a process that had workers, and whose main thread "
            "has not ended; choose 'auto' or 'sequential'"
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
        self._size = workers
        self._files = TensorFiles()
        self._keys = count()
        self._examples = TensorBundle({})
        self._death: tuple[int | None, int | None] | None = None
        self._start()

    def is_ready(self) -> bool:
        """Return whether every worker is started or dead; it then responds at once."""
        return not self._starting.is_alive()

    def load_job(self, job: TrainingJob) -> None:
        """Load the training job of the next clients."""
        loaded = self._examples.tensors.values()
        if len(loaded) != len(job.pool.tensors()) or not all(
            map(operator.is_, loaded, job.pool.tensors())
        ):
            parts = enumerate(job.pool.tensors())
            self._examples = TensorBundle({f"{EXAMPLES}{place}": part for place, part in parts})
        self._weights = TensorBundle({START + name: part for name, part in job.start.items()})
        self._job, self._key = job, next(self._keys)
        try:
            future = self.submit(WorkerTask(BuildModel(job.build_model), ()))
        # A user's object may raise any exception while it is pickled.
        except Exception as error:
            raise _unsendable_model_error(str(error)) from error
        output = self._wait_for(future, "loading the training job")
        if isinstance(output, WorkerFailure):
            raise _unsendable_model_error(output.reason)

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
        waiting: deque[tuple[ClientTask, WorkerTask, Future[WorkerOutput]]] = deque()
        finished = False
        try:
            for client in clients:
                if len(waiting) == window:
                    yield self._next_result(waiting)
                task = self._client_task(client)
                waiting.append((client, task, self._send_for(client, task)))
            while len(waiting) > 1:
                yield self._next_result(waiting)
            last = [self._next_result(waiting) for _ in range(len(waiting))]
            finished = True
        finally:
            self.release() if finished else self.stop()
        yield from last

    def run_tasks(
        self, tasks: Iterable[tuple[int, WorkerTask]]
    ) -> Generator[TaskResult, None, None]:
        """Run numbered tasks, and yield results as they finish, in any order.

        If a worker dies, all are replaced, and the unfinished tasks are tried again. A task
        that cannot be sent, or fails in a worker, runs in this process, and so do all later
        ones. So its own error is raised, and models that no other process can import work too.
        A caller that stops before the last result, also by Ctrl-C, ends the workers.

        Raises:
            WorkerError: if a worker died in every attempt at one task.

        """
        finished = False
        try:
            yield from _TaskRun(self).run(tasks)
            finished = True
        finally:
            self.release() if finished else self.stop()

    def submit(self, task: WorkerTask) -> Future[WorkerOutput]:
        """Let a worker run a task; replace the workers if one died."""
        try:
            return self._send(task)
        except BrokenProcessPool:
            self._death = self._end_and_find_death()
            self._start()
            return self._send(task)

    def death_error(self, doing: str) -> WorkerError:
        """Return the error of a worker that died.

        Args:
            doing: description of what it did.

        """
        number, code = self._end_and_find_death()
        return WorkerError(
            f"worker process {number} died (exit code {code}) while {doing}; if the "
            "machine ran out of memory, use fewer workers or the engine 'sequential'"
        )

    def release(self) -> None:
        """Keep the pool for the next call, or stop it if one of this size is idle already."""
        if _IDLE.setdefault(self._size, self) is not self:
            self.stop()

    def stop(self) -> None:
        """End every process and wait for it; done at the latest when Python exits."""
        self._end()
        self._files.close()

    def _start(self) -> None:
        # Before the finalizer of the workers, so that the server outlives them.
        starter.start()
        self._context = WorkerContext()
        cores = self._context.SimpleQueue()
        for core in _allowed_cores() if self._size == available_cores() else ():
            cores.put(core)
        self._executor = ProcessPoolExecutor(
            self._size, self._context, prepare_worker, (cores,)
        )
        self._end = weakref.finalize(self, _end, self._executor, self._context, os.getpid())
        self._starting = Thread(
            target=_start_workers, args=(self._executor, self._size), daemon=True
        )
        self._starting.start()

    def _send(self, task: WorkerTask) -> Future[WorkerOutput]:
        stored = {n: t for bundle in task.bundles for n, t in self._files.store(bundle).items()}
        return self._executor.submit(answer, pickle_request(task.job, stored))

    def _send_for(self, client: ClientTask, task: WorkerTask) -> Future[WorkerOutput]:
        # Replaced workers would hide which one died with the clients that wait.
        try:
            return self._send(task)
        except BrokenProcessPool as error:
            raise self.death_error(f"training {client.name}") from error

    def _end_and_find_death(self) -> tuple[int | None, int | None]:
        """End the workers, and return number and exit code of the one that died."""
        self._end()
        ends = [(each.pid, each.exitcode) for each in self._context.workers]
        # Those that lived were ended by this signal. If all lived, the death was of the workers
        # that they replaced.
        dead = [end for end in ends if end[1] != -signal.SIGTERM]
        return dead[0] if dead else self._death or ends[-1]

    def _client_task(self, client: ClientTask) -> WorkerTask:
        job, correction = self._job, client.correction or {}
        own = {ROWS: client.rows} | {CORRECTION + n: part for n, part in correction.items()}
        task = TrainClient(
            self._key,
            job.build_model,
            job.recipe,
            job.seed,
            job.round,
            job.has_corrections,
            client.name,
            client.epochs,
        )
        return WorkerTask(task, (self._examples, self._weights, TensorBundle(own)))

    def _next_result(
        self, waiting: deque[tuple[ClientTask, WorkerTask, Future[WorkerOutput]]]
    ) -> ClientResult:
        # Until the future is done, the task keeps the files that the worker reads.
        client, _task, future = waiting[0]
        output = self._wait_for(future, f"training {client.name}")
        waiting.popleft()
        if isinstance(output, WorkerFailure):
            raise WorkerError(f"training {client.name} failed in a worker:\n{output.reason}")
        tensors = _tensors(output)
        return ClientResult(client, part_of(tensors, DELTA), float(tensors[LOSS]))

    def _wait_for(self, future: Future[WorkerOutput], doing: str) -> WorkerOutput:
        try:
            return future.result()
        except BrokenProcessPool as error:
            raise self.death_error(doing) from error


@final
class _TaskRun:
    """Tasks that run in a pool of workers."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._pending: dict[Future[WorkerOutput], tuple[int, WorkerTask]] = {}
        self._able = True
        # By the number of the task. A death counts for all pending ones, as nobody knows whose
        # it was.
        self._deaths = Counter[int]()

    def run(self, tasks: Iterable[tuple[int, WorkerTask]]) -> Iterator[TaskResult]:
        """Run numbered tasks, and yield results as they finish."""
        for number, task in tasks:
            if not self._able:
                yield TaskResult(number, task.run())
                continue
            yield from self._finished_tasks(TASKS_PER_WORKER * self._pool._size - 1)
            try:
                future = self._pool.submit(task)
            # A user's object may raise any exception while it is pickled.
            except Exception:
                self._able = False
                yield TaskResult(number, task.run())
            else:
                self._pending[future] = number, task
        yield from self._finished_tasks(0)

    def _finished_tasks(self, most: int) -> Iterator[TaskResult]:
        """Yield results as tasks finish, until at most `most` tasks are pending."""
        while len(self._pending) > most:
            done = wait(self._pending, return_when=FIRST_COMPLETED).done
            again = list[tuple[int, WorkerTask]]()
            for future in done:
                number, task = self._pending.pop(future)
                try:
                    output = future.result()
                except BrokenProcessPool:
                    again.append((number, task))
                    continue
                self._able &= isinstance(output, Mapping)
                yield TaskResult(
                    number, _tensors(output) if isinstance(output, Mapping) else task.run()
                )
            if again:
                self._deaths.update(number for number, _ in again)
                if any(self._deaths[number] > RETRIES for number, _ in again):
                    raise self._pool.death_error("doing a task")
                self._pending |= {self._pool.submit(task): (n, task) for n, task in again}


@final
class TensorFiles:
    """A folder with the tensors of every bundle that some task still reads.

    A bundle is written with its first task. Its files are removed once the bundle is garbage
    collected, so the disk holds only the tensors of current tasks.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="overheard-")
        self._stored: weakref.WeakKeyDictionary[TensorBundle, Mapping[str, StoredTensor]] = (
            weakref.WeakKeyDictionary()
        )

    def store(self, bundle: TensorBundle) -> Mapping[str, StoredTensor]:
        """Return the tensors of a bundle; write them if they are not yet on the disk."""
        if bundle not in self._stored:
            folder = tempfile.TemporaryDirectory(dir=self._folder.name)
            weakref.finalize(bundle, folder.cleanup)
            self._stored[bundle] = {
                name: store_tensor(tensor, Path(folder.name) / str(place))
                for place, (name, tensor) in enumerate(bundle.tensors.items())
            }
        return self._stored[bundle]

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()


_IDLE: dict[int, WorkerPool] = {}
"""Idle pools by number of workers; starting a new one takes seconds."""

_SAVABLE_SECONDS: dict[int, float] = {}
"""Seconds that a pool would have saved this process so far, by number of workers."""


def _are_worthwhile(workers: int) -> bool:
    """Return whether these workers would have saved enough for being started."""
    return _SAVABLE_SECONDS.get(workers, -math.inf) >= MIN_SAVED_SECONDS


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


def _tensors(arrays: Mapping[str, Array]) -> Mapping[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _start_workers(executor: ProcessPoolExecutor, workers: int) -> None:
    """Wait until the workers have started."""
    # The pool may be stopped meanwhile, or the process die that forks them.
    with suppress(BrokenProcessPool, RuntimeError, OSError, EOFError):
        wait([executor.submit(os.getpid) for _ in range(workers)])


def _end(executor: ProcessPoolExecutor, context: WorkerContext, owner: int) -> None:
    """Kill the workers, and wait for them; a fork of their owner leaves them alone."""
    if os.getpid() != owner:
        return
    for worker in context.workers:
        with suppress(AttributeError, ValueError):  # It has not started, or ended long ago.
            worker.kill()
    executor.shutdown(cancel_futures=True)
