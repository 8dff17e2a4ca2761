"""Jobs whose results are cached, and run only if they are missing."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, groupby
from time import perf_counter
from typing import final

from torch import Tensor

from overheard.core.compute_settings import ComputeSettings
from overheard.core.messages import Weights
from overheard.learning.threads import available_cores
from overheard.learning.workers import processes
from overheard.learning.workers.job import Job, TaskResult, TensorBundle, WorkerTask
from overheard.simulation.cache_keys import combined_key
from overheard.simulation.cluster.ray_executor import run_on_ray
from overheard.simulation.job_tensors import pack_broadcast


def run_tasks(
    tasks: Iterable[WorkerTask], count: int, settings: ComputeSettings
) -> Generator[TaskResult, None, None]:
    """Run `count` tasks, and yield results as they finish, in any order.

    Results are the same bit for bit wherever tasks run. Closing the generator early, for
    example by Ctrl-C, stops all running tasks.

    Raises:
        PlanError: if a cluster is requested, but Ray is not installed or the cluster does not
            respond.
        WorkerError: if workers die repeatedly on one task.

    """
    if settings.cluster is not None:
        return run_on_ray(enumerate(tasks), settings.cluster)
    workers = available_cores() if settings.workers is None else settings.workers
    if workers > 1 and settings.job_device == "cpu" and processes.are_supported():
        return _run_with_late_workers(tasks, count, workers)
    return (TaskResult(number, task.run()) for number, task in enumerate(tasks))


def _run_with_late_workers(
    tasks: Iterable[WorkerTask], count: int, workers: int
) -> Generator[TaskResult, None, None]:
    """Run tasks here until workers are ready, which are started once that saves time."""
    numbered = enumerate(tasks)
    for number, task in numbered:
        if processes.are_ready(workers):
            yield from processes.acquire(workers).run_tasks(chain([(number, task)], numbered))
            return
        start = perf_counter()
        tensors = task.run()
        if number == 0:
            saved = (perf_counter() - start) * (count - 1) * (1 - 1 / workers)
            processes.record_saving(saved, workers)
        yield TaskResult(number, tensors)


JobResult = Mapping[str, Tensor]
"""Named tensors, cached under one key."""


@final
@dataclass(frozen=True, slots=True)
class CachedJob:
    """A job with several results, each cached under its own key.

    Args:
        round: the round from whose broadcast the job starts.
        keys: the cache keys of its results.
        build_job: builds the job that computes only the results at these positions, in this
            order.

    """

    round: int
    keys: tuple[str, ...]
    build_job: Callable[[tuple[int, ...]], Job]


def single_result_job(round: int, key: str, job: Job) -> CachedJob:
    """Return a cached job with one result, which starts from the broadcast of this round."""
    return CachedJob(round, (key,), lambda _: job)


@final
@dataclass(frozen=True, slots=True)
class JobInputs:
    """The inputs of jobs.

    Args:
        shared: returns the bundles that all jobs read; not called if no job must be run.
        broadcasts: the broadcast of each round.

    """

    shared: Callable[[], tuple[TensorBundle, ...]]
    broadcasts: Mapping[int, Weights]


def whole_result(tensors: Mapping[str, Tensor], position: int) -> JobResult:
    """Return all tensors, as the result of a job with one result."""
    return tensors


def run_cached_jobs(
    description: str,
    jobs: Sequence[CachedJob],
    inputs: JobInputs,
    settings: ComputeSettings,
    on_result: Callable[[int, int, JobResult], None],
    select_result: Callable[[Mapping[str, Tensor], int], JobResult] = whole_result,
) -> None:
    """Load cached results, compute the missing ones, and pass all of them to `on_result`.

    A job computes only those of its results that are not cached. They equal bit for bit those
    of a run without a cache. Each is cached as soon as it is computed.

    Args:
        description: the description of the jobs for `ComputeSettings.on_progress`.
        jobs: ordered so that jobs of one round are consecutive.
        inputs: the inputs of all jobs.
        settings: the cache, and where to compute.
        on_result: called with the number of the job, the position of the result among its keys,
            and the result; in any order.
        select_result: selects a result from all tensors of a job, by its position among the
            results that were requested.

    Raises:
        PlanError: if a cluster is requested, but Ray is not installed or the cluster does not
            respond.
        WorkerError: if workers die repeatedly on one task.

    """
    done, pending = 0, list[_PendingJob]()
    for number, job in enumerate(jobs):
        missing = []
        for position in range(len(job.keys)):
            cached = settings.cache.load(_key(job, position, settings))
            if cached is None:
                missing.append(position)
            else:
                on_result(number, position, cached)
        if missing:
            pending.append(_PendingJob(number, job, tuple(missing)))
        else:
            done += 1
            settings.on_progress(description, done, len(jobs))
    if not pending:
        # Connecting to a cluster may take long, so do not do it without need.
        return
    # Close the generator on an error in this block, so that its workers stop before the error
    # is raised.
    with closing(run_tasks(_tasks(pending, inputs), len(pending), settings)) as finished_tasks:
        for finished in finished_tasks:
            pending_job = pending[finished.number]
            for index, position in enumerate(pending_job.missing):
                result = select_result(finished.tensors, index)
                settings.cache.save(_key(pending_job.job, position, settings), result)
                on_result(pending_job.number, position, result)
            done += 1
            settings.on_progress(description, done, len(jobs))


def _key(job: CachedJob, position: int, settings: ComputeSettings) -> str:
    """Return the key of a result; those of a GPU, with other last bits, have their own."""
    key, device = job.keys[position], settings.job_device
    return key if device == "cpu" else combined_key(key, device)


@final
@dataclass(frozen=True, slots=True)
class _PendingJob:
    """A job with missing results: its number, and the positions of those results."""

    number: int
    job: CachedJob
    missing: tuple[int, ...]


def _tasks(pending: Sequence[_PendingJob], inputs: JobInputs) -> Iterator[WorkerTask]:
    shared = inputs.shared()
    # One broadcast at a time, so that not all rounds are in memory at once.
    for round_number, same_round in groupby(pending, lambda pending_job: pending_job.job.round):
        broadcast = pack_broadcast(inputs.broadcasts[round_number])
        for pending_job in same_round:
            yield WorkerTask(
                pending_job.job.build_job(pending_job.missing), (*shared, broadcast)
            )
