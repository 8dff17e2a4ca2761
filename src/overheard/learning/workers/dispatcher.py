"""The assignment of tasks to worker processes, with retries if a worker dies."""

import tempfile
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import final

from torch import Tensor

from overheard.disk.folders import make_folder, remove_folder
from overheard.learning.workers.job import TaskResult, TensorBundle, WorkerTask
from overheard.learning.workers.worker import RunJob, StoredTensor, WorkerFailure
from overheard.learning.workers.worker_process import (
    DeadWorkerError,
    WorkerProcess,
    pickle_request,
    store_tensor,
)


@final
class TaskFiles:
    """A folder with the tensors of every bundle that some task still reads.

    A bundle is written with its first task. Its files are removed once the bundle is garbage
    collected, so the disk holds only the tensors of current tasks.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="overheard-")
        self._written: weakref.WeakKeyDictionary[TensorBundle, Mapping[str, StoredTensor]] = (
            weakref.WeakKeyDictionary()
        )
        self._count = 0

    def tensors(self, task: WorkerTask) -> Mapping[str, StoredTensor]:
        """Return all tensors of a task; write those not yet on the disk."""
        for bundle in task.bundles:
            if bundle not in self._written:
                self._written[bundle] = self._write(bundle)
        return {n: t for bundle in task.bundles for n, t in self._written[bundle].items()}

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()

    def _write(self, bundle: TensorBundle) -> Mapping[str, StoredTensor]:
        folder = Path(self._folder.name) / str(self._count)
        make_folder(folder, inside=folder.parent)
        self._count += 1
        weakref.finalize(bundle, remove_folder, folder, inside=folder.parent)
        return {
            name: store_tensor(tensor, folder / str(place))
            for place, (name, tensor) in enumerate(bundle.tensors.items())
        }


RETRIES = 3
"""Retries of a task whose worker died."""

TASKS_PER_WORKER = 2
"""Pending tasks per worker, so that no worker waits for the caller."""

WorkerOutput = Mapping[str, Tensor] | WorkerFailure
"""What a worker returns to a request for tensors."""

PendingTasks = dict[Future[WorkerOutput], tuple[int, WorkerTask]]
"""Pending tasks by their future."""


@final
class Dispatcher:
    """A queue that passes each request to the next free worker and may replace dead workers.

    Args:
        workers: the worker processes; a new worker replaces a dead one in this list.

    """

    def __init__(self, workers: list[WorkerProcess]) -> None:
        self._workers = workers
        self._free: SimpleQueue[int] = SimpleQueue()
        for index in range(len(workers)):
            self._free.put(index)
        self._executor = ThreadPoolExecutor(len(workers), "overheard-worker")
        self._files = TaskFiles()
        self._ended = Event()
        self._able = True

    def submit(self, request: bytes, doing: str, retries: int = 0) -> Future[WorkerOutput]:
        """Pass a request to the next free worker.

        The future raises `DeadWorkerError` if a worker died in every attempt.

        Args:
            request: a request from `pickle_request`.
            doing: description of the request, for error messages.
            retries: further attempts, each with a new worker in index of the dead one.

        """
        return self._executor.submit(self._do, request, doing, retries)

    def run(self, tasks: Iterable[tuple[int, WorkerTask]]) -> Generator[TaskResult, None, None]:
        """Run numbered tasks, and yield results as they finish, in any order.

        A task that cannot be sent, or fails in a worker, runs in this process. So its own error
        is raised, and models that no other process can import work too.

        Raises:
            WorkerError: if a worker died in every attempt at one task.

        """
        pending: PendingTasks = {}
        for number, task in tasks:
            request = self._request(task) if self._able else None
            if request is None:
                yield TaskResult(number, task.run())
                continue
            yield from self._finished_tasks(pending, TASKS_PER_WORKER * len(self._workers) - 1)
            pending[self.submit(request, "doing a task", RETRIES)] = (number, task)
        yield from self._finished_tasks(pending, 0)

    def close(self, finished: bool) -> None:
        """Wait for the threads and remove the files; unless finished, kill the workers."""
        if not finished:
            self._ended.set()
            for worker in self._workers:
                worker.kill()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._files.close()

    def _request(self, task: WorkerTask) -> bytes | None:
        try:
            return pickle_request(RunJob(task.job, self._files.tensors(task)))
        # A user's object may raise any exception while it is pickled.
        except Exception:
            self._able = False
            return None

    def _finished_tasks(self, pending: PendingTasks, most: int) -> Iterator[TaskResult]:
        """Yield results as tasks finish, until at most `most` tasks are pending."""
        while len(pending) > most:
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                number, task = pending.pop(future)
                tensors = future.result()
                if isinstance(tensors, WorkerFailure):
                    tensors = task.run()
                    self._able = False
                yield TaskResult(number, tensors)

    def _do(self, request: bytes, doing: str, retries: int) -> WorkerOutput:
        """Pass the request to the next free worker; runs in a thread that only waits."""
        for attempt in range(retries + 1):
            index = self._free.get()
            try:
                self._workers[index].send(request)
                return self._workers[index].receive_tensors(doing)
            except DeadWorkerError:
                if attempt == retries or self._ended.is_set():
                    raise
                self._replace(index)
            finally:
                # Put back even a dead worker, so that a waiting thread takes it and gets the
                # error.
                self._free.put(index)
        raise AssertionError("the last attempt returns or raises")

    def _replace(self, index: int) -> None:
        dead = self._workers[index]
        dead.connection.close()
        self._workers[index] = WorkerProcess(dead.core)
        if self._ended.is_set():
            # `close` may have killed the workers before this one started.
            self._workers[index].kill()
        self._workers[index].receive("starting")
