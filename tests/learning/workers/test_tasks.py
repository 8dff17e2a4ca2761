"""Tasks in worker processes run once each, even if workers die."""

import os
import signal
import time
from collections.abc import Iterator

import pytest
import torch

from overheard.core.errors import PlanError, WorkerError
from overheard.learning.workers import processes
from overheard.learning.workers.job import Job, TensorBundle, WorkerTask
from overheard.learning.workers.processes import RETRIES
from tests.learning.interrupted import interrupt
from tests.learning.jobs import DiesAtFirst, Endless, Refuses, Scaled

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers inherit a connection")

NUMBERS = TensorBundle({"numbers": torch.tensor([1.0, 3.0])})


def tasks(*jobs: Job) -> Iterator[tuple[int, WorkerTask]]:
    return enumerate(WorkerTask(job, (NUMBERS,)) for job in jobs)


def done(*jobs: Job, workers: int = 2) -> dict[int, list[float]]:
    work = processes.acquire(workers).run_tasks(tasks(*jobs))
    return {piece.number: piece.tensors["scaled"].tolist() for piece in work}


@pytest.mark.slow
def test_replaces_a_dead_worker_and_retries_its_task(tmp_path) -> None:
    jobs = (DiesAtFirst(str(tmp_path), RETRIES), Scaled(5.0))
    assert done(*jobs) == {0: [2.0, 6.0], 1: [5.0, 15.0]}
    assert len(list(tmp_path.iterdir())) == RETRIES
    # The other worker did all that was left, and the last one may still be starting.
    deadline = time.monotonic() + 20
    while not processes.are_ready(2):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_replaces_a_worker_that_was_killed_while_idle() -> None:
    done(Scaled(1.0))
    worker_pool = processes.acquire(2)
    os.kill(worker_pool._context.workers[0].pid or 0, signal.SIGKILL)
    worker_pool._context.workers[0].join()
    worker_pool.release()
    assert done(*[Scaled(2.0)] * 6) == {number: [2.0, 6.0] for number in range(6)}


@pytest.mark.slow
def test_gives_up_a_task_that_kills_every_worker(tmp_path) -> None:
    with pytest.raises(WorkerError, match=r"died .exit code -9.*fewer workers"):
        done(DiesAtFirst(str(tmp_path), 99), workers=1)
    assert len(list(tmp_path.iterdir())) == RETRIES + 1
    assert not processes.are_ready(1)


@pytest.mark.slow
def test_gives_up_a_task_that_kills_every_worker_though_others_are_done(tmp_path) -> None:
    jobs = tasks(DiesAtFirst(str(tmp_path), 99), *[Scaled(1.0)] * 500)
    finished = []
    with pytest.raises(WorkerError, match=r"died .exit code -9.*fewer workers"):
        finished.extend(processes.acquire(2).run_tasks(jobs))
    assert len(list(tmp_path.iterdir())) == RETRIES + 1
    assert next(jobs, None)


@pytest.mark.slow
def test_raises_the_original_error_of_a_job() -> None:
    with pytest.raises(PlanError, match="change the plan"):
        done(Refuses())


def test_runs_a_job_that_cannot_be_sent_in_this_process() -> None:
    class Local(Job):
        def run(self, tensors):
            return Scaled(7.0).run(tensors)

    work = list(processes.acquire(2).run_tasks(tasks(Local(), Scaled(2.0))))
    assert [int(piece.tensors["worker"]) for piece in work] == [os.getpid()] * 2
    assert work[0].tensors["scaled"].tolist() == [7.0, 21.0]


@pytest.mark.slow
def test_a_caller_that_stops_early_ends_the_workers() -> None:
    worker_pool = processes.acquire(1)
    work = worker_pool.run_tasks(tasks(Scaled(1.0), Endless(), Endless()))
    next(work)
    work.close()
    assert worker_pool._context.workers[0].exitcode == -signal.SIGKILL
    assert not processes.are_ready(1)


ENDLESS = """
import torch
from overheard.learning.workers import processes
from overheard.learning.workers.job import TensorBundle, WorkerTask
from tests.learning.jobs import Endless

worker_pool = processes.acquire(1)
worker_pool._starting.join()
print(worker_pool._context.workers[0].pid, flush=True)
bundle = TensorBundle({"numbers": torch.ones(1)})
list(worker_pool.run_tasks([(0, WorkerTask(Endless(), (bundle,)))]))
"""


@pytest.mark.slow
def test_ctrl_c_ends_the_caller_and_its_workers(tmp_path) -> None:
    stderr, worker = interrupt(ENDLESS, tmp_path)
    assert stderr.rstrip().endswith("KeyboardInterrupt")
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    assert not list(tmp_path.glob("overheard-*"))
