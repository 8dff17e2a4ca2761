"""Execution of tasks: here, in worker processes or on a Ray cluster."""

from collections.abc import Generator, Iterable
from itertools import chain
from time import perf_counter

import torch

from overheard.core.compute_settings import ComputeSettings
from overheard.learning.threads import available_cores
from overheard.learning.workers import processes
from overheard.learning.workers.job import TaskResult, WorkerTask
from overheard.simulation.cluster.ray_executor import run_on_ray


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
    on_cpu = torch.device(settings.device).type == "cpu"
    if workers > 1 and on_cpu and processes.are_supported():
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
