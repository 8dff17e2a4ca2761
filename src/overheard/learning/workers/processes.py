"""One worker process a core: the sequential engine, as many times over as there are cores."""

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
"""Seconds to be saved for which workers are called: to come up takes them two or three, which
the caller goes on working in, and then they stay for the rounds that follow."""


def are_possible() -> bool:
    """True if this system lets a child inherit one end of a connection (not on Windows)."""
    return os.name == "posix"


def are_ready(workers: int) -> bool:
    """True if so many workers stand ready, from an earlier call or since they were called."""
    return workers in _IDLE and _IDLE[workers].is_ready()


def miss(seconds: float, workers: int) -> None:
    """Say that so many workers would save this much time, or would have saved it.

    Once that is worth it they are called: they come up beside the caller, who need not wait.
    """
    _MISSED[workers] = _MISSED.get(workers, 0.0) + seconds
    if _MISSED[workers] >= WORTH_CALLING and workers not in _IDLE:
        _IDLE[workers] = Crew(workers)


def do_without(workers: int) -> None:
    """Never call so many workers again: what they would have to learn cannot be sent."""
    _MISSED[workers] = -math.inf


def hire(lesson: Lesson, workers: int) -> "Crew":
    """Give this many workers, who have taken the lesson; train with them at once.

    Raises:
        PlanError: if this system has no such workers, or the model cannot be sent to them.

    """
    crew = muster(workers)
    try:
        crew.take(lesson)
    except BaseException:
        crew.stop()
        raise
    return crew


def muster(workers: int) -> "Crew":
    """Give this many workers, from an earlier call or new ones; work with them at once.

    Raises:
        PlanError: if this system has no such workers.

    """
    if not are_possible():
        raise PlanError(
            "the engine 'processes' needs Linux or macOS: choose 'auto' or 'sequential'"
        )
    crew = _IDLE.pop(workers, None)
    if crew is not None and crew.path != import_path():
        # Modules may have come that these workers would not find.
        crew.stop()
        crew = None
    return crew or Crew(workers)


@final
class Crew:
    """Worker processes that train for one caller at a time, and stay for the next."""

    def __init__(self, workers: int) -> None:
        self.path = import_path()
        pinned = _allowed_cores() if workers == cores() else []
        self._workers = [
            WorkerProcess(pinned[number] if pinned else None) for number in range(workers)
        ]
        self._end = weakref.finalize(self, _end, self._workers)
        self._pool: tuple[weakref.ref[Tensor], weakref.ref[Tensor]] | None = None
        self._coming = list(self._workers)

    def is_ready(self) -> bool:
        """True if every worker is up, or gone: either way it answers at once."""
        return all(worker.connection.poll() for worker in self._coming)

    def take(self, lesson: Lesson) -> None:
        """Tell every worker what the next members share."""
        self._greet()
        try:
            start = {name: weight.cpu().numpy() for name, weight in lesson.start.items()}
            told = written(
                TakeLesson(lesson.build_model, start, lesson.recipe, lesson.seed, lesson.round)
            )
        # Whatever a user's object raises on the way out, the answer is the same.
        except Exception as error:
            raise _unsendable(str(error)) from error
        self._share(lesson.pool)
        for worker in self._workers:
            worker.send(told)
        for worker in self._workers:
            answer = worker.answer("taking the lesson")
            if isinstance(answer, Failed):
                raise _unsendable(answer.reason)

    def train(self, members: Sequence[Member], window: int) -> Iterator[Trained]:
        """Train members, and give them in the order in which they came.

        The workers are at rest before the last member is given, so a caller may take as many
        as there are and listen no further. Whoever stops listening before that, be it by
        Ctrl-C, ends the workers.

        Args:
            members: who learns.
            window: how many may be in work, or done and not yet taken, at once.

        Raises:
            WorkerError: if a worker dies, or training fails there.

        """
        dispatch = Dispatch(self._workers)
        waiting: deque[tuple[Member, Future[Answered]]] = deque()
        finished = False
        try:
            for member in members:
                if len(waiting) == window:
                    yield _trained(*waiting.popleft())
                request = written(Train(member.name, member.rows.cpu().numpy()))
                asked = dispatch.submit(request, f"training {member.name}")
                waiting.append((member, asked))
            while len(waiting) > 1:
                yield _trained(*waiting.popleft())
            last = [_trained(*each) for each in waiting]
            finished = True
        finally:
            dispatch.close(finished)
            self.rest() if finished else self.stop()
        yield from last

    def work(self, tasks: Iterable[tuple[int, WorkerTask]]) -> Generator[Done, None, None]:
        """Do numbered tasks, and give them as they are done, in any order.

        A worker that dies is replaced, and what it was doing is asked of another. Whoever stops
        listening half-way, be it by Ctrl-C, ends the workers.

        Raises:
            WorkerError: if workers die of one task again and again.

        """
        dispatch, before = Dispatch(self._workers), list(self._workers)
        finished = False
        try:
            self._greet()
            yield from dispatch.run(tasks)
            finished = True
        finally:
            dispatch.close(finished)
            if self._workers != before:
                # Newcomers have no pool.
                self._pool = None
            self.rest() if finished else self.stop()

    def rest(self) -> None:
        """Stand ready for the next call; where others do already, one crew is enough."""
        if _IDLE.setdefault(len(self._workers), self) is not self:
            self.stop()

    def stop(self) -> None:
        """End every process and wait for it; happens at the latest when Python exits."""
        self._end()

    def _greet(self) -> None:
        """Wait until every worker is up."""
        while self._coming:
            self._coming[0].answer("starting")
            self._coming.pop(0)

    def _share(self, pool: Examples) -> None:
        """Lay the pool where every worker can map it, unless they have it still."""
        held = None if self._pool is None else tuple(known() for known in self._pool)
        if held is not None and held[0] is pool.inputs and held[1] is pool.labels:
            return
        with tempfile.TemporaryDirectory(prefix="overheard-") as folder:
            told = written(
                TakePool(
                    stored(pool.inputs, Path(folder) / "inputs"),
                    stored(pool.labels, Path(folder) / "labels"),
                )
            )
            for worker in self._workers:
                worker.send(told)
            for worker in self._workers:
                answer = worker.answer("taking the pool of examples")
                if isinstance(answer, Failed):
                    raise WorkerError(f"no worker could take the pool:\n{answer.reason}")
        self._pool = (weakref.ref(pool.inputs), weakref.ref(pool.labels))


def _trained(member: Member, asked: Future[Answered]) -> Trained:
    """What a member learned, once its worker has answered."""
    answer = asked.result()
    if isinstance(answer, Failed):
        raise WorkerError(f"training {member.name} failed in a worker:\n{answer.reason}")
    changed = {
        name.removeprefix(DELTA): part
        for name, part in answer.items()
        if name.startswith(DELTA)
    }
    return Trained(member, changed, float(answer[LOSS]))


_IDLE: dict[int, Crew] = {}
"""Crews between two calls, by number of workers: to start one takes seconds."""

_MISSED: dict[int, float] = {}
"""Seconds that so many workers would have saved this process so far."""


def _allowed_cores() -> list[int]:
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return []


def _unsendable(reason: str) -> PlanError:
    return PlanError(
        "the model cannot be sent to worker processes: define its builder at the top of an "
        f"importable module, or choose the engine 'auto' or 'sequential'; {reason}"
    )


def _kill(workers: Sequence[WorkerProcess]) -> None:
    """End the processes, and wait for them so that none stays behind as a zombie."""
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.process.wait()


def _end(workers: Sequence[WorkerProcess]) -> None:
    _kill(workers)
    for worker in workers:
        worker.connection.close()
