"""Hands tasks to worker processes, and again to another where one died."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from threading import Event
from typing import final

from torch import Tensor

from overheard.learning.workers.job import Done, WorkerTask
from overheard.learning.workers.task_files import TaskFiles
from overheard.learning.workers.worker import Do, Failed
from overheard.learning.workers.worker_process import DeadWorkerError, WorkerProcess, written

RETRIES = 3
"""Times that a task is tried again whose worker died, before it is given up."""

AHEAD = 2
"""Tasks under way a worker, so that none waits for the caller."""

Answered = Mapping[str, Tensor] | Failed
"""What a worker gives that was asked for tensors."""

Flying = dict[Future[Answered], tuple[int, WorkerTask]]
"""Tasks under way, by what will tell of them."""


@final
class Dispatch:
    """Has the next free worker answer each request; one that dies may be replaced.

    Args:
        workers: who work; the place of a dead one is taken by a new one.

    """

    def __init__(self, workers: list[WorkerProcess]) -> None:
        self._workers = workers
        self._free: SimpleQueue[int] = SimpleQueue()
        for place in range(len(workers)):
            self._free.put(place)
        self._executor = ThreadPoolExecutor(len(workers), "overheard-worker")
        self._files = TaskFiles()
        self._ended = Event()
        self._able = True

    def submit(self, request: bytes, doing: str, retries: int = 0) -> Future[Answered]:
        """Have the next free worker answer a request.

        The future raises `DeadWorkerError` where a worker died of it each time.

        Args:
            request: as `written` writes it.
            doing: what it asks for, in words.
            retries: times that it is tried again by a new worker in place of one that died.

        """
        return self._executor.submit(self._do, request, doing, retries)

    def run(self, tasks: Iterable[tuple[int, WorkerTask]]) -> Generator[Done, None, None]:
        """Do numbered tasks, and give them as they are done, in any order.

        What no worker can do, as it cannot be sent or fails there, is done here: so an error
        is raised as itself, and a model that no other process can import is no obstacle.

        Raises:
            WorkerError: if a worker died of one task each time.

        """
        flying: Flying = {}
        for number, task in tasks:
            request = self._request(task) if self._able else None
            if request is None:
                yield Done(number, task.run())
                continue
            yield from self._landed(flying, AHEAD * len(self._workers) - 1)
            flying[self.submit(request, "doing a task", RETRIES)] = (number, task)
        yield from self._landed(flying, 0)

    def close(self, finished: bool) -> None:
        """Wait for the threads, remove the files; unless finished, end the workers first."""
        if not finished:
            self._ended.set()
            for worker in self._workers:
                worker.kill()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._files.close()

    def _request(self, task: WorkerTask) -> bytes | None:
        try:
            return written(Do(task.job, self._files.tensors(task)))
        # Whatever a user's object raises on the way out, the answer is the same.
        except Exception:
            self._able = False
            return None

    def _landed(self, flying: Flying, most: int) -> Iterator[Done]:
        """Give tasks as they are done, until at most so many are under way."""
        while len(flying) > most:
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                number, task = flying.pop(future)
                tensors = future.result()
                if isinstance(tensors, Failed):
                    tensors = task.run()
                    self._able = False
                yield Done(number, tensors)

    def _do(self, request: bytes, doing: str, retries: int) -> Answered:
        """Have the next free worker do it; runs in a thread that only waits."""
        for attempt in range(retries + 1):
            place = self._free.get()
            try:
                self._workers[place].send(request)
                return self._workers[place].tensors(doing)
            except DeadWorkerError:
                if attempt == retries or self._ended.is_set():
                    raise
                self._replace(place)
            finally:
                # A dead worker too: whoever waits for one must hear of it, not wait for ever.
                self._free.put(place)
        raise AssertionError("the last attempt returns or raises")

    def _replace(self, place: int) -> None:
        dead = self._workers[place]
        dead.connection.close()
        self._workers[place] = WorkerProcess(dead.core)
        if self._ended.is_set():
            # Whoever ended the others may have passed this place already.
            self._workers[place].kill()
        self._workers[place].answer("starting")
