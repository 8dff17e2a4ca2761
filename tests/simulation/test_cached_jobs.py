from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import pytest
import torch
from torch import Tensor

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.learning.workers.job import Job, TensorBundle
from overheard.simulation.cached_jobs import (
    CachedJob,
    JobInputs,
    run_cached_jobs,
    single_result_job,
)
from overheard.simulation.job_tensors import unpack_broadcast

SHARED = TensorBundle({"addend": torch.tensor(10.0)})


@final
@dataclass(frozen=True, slots=True)
class Times(Job):
    """Multiply the broadcast's weight by each factor, and add a shared number."""

    factors: tuple[int, ...]

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        weight = unpack_broadcast(tensors)["w"]
        return {
            str(position): factor * weight + tensors["addend"]
            for position, factor in enumerate(self.factors)
        }


def times(number: int, factors: tuple[int, ...]) -> CachedJob:
    keys = tuple(f"{number:04}{factor:04}" for factor in factors)
    return CachedJob(number, keys, lambda missing: Times(tuple(factors[n] for n in missing)))


class JobRunner:
    """Runs jobs, and records their results and the reported progress."""

    def __init__(self) -> None:
        self.shelf = MemoryTensorCache()
        self.results: dict[tuple[int, int], float] = {}
        self.progress: list[tuple[str, int, int]] = []
        self.shared = 0

    def run_jobs(self, *jobs: CachedJob) -> None:
        def shared() -> tuple[TensorBundle, ...]:
            self.shared += 1
            return (SHARED,)

        def on_result(job: int, position: int, answer: Mapping[str, Tensor]) -> None:
            self.results[job, position] = float(answer["product"])

        broadcasts = {number: {"w": torch.tensor(1.0 + number)} for number in (0, 1)}
        means = ComputeSettings(
            cache=self.shelf,
            workers=1,
            on_progress=lambda what, done, total: self.progress.append((what, done, total)),
        )
        run_cached_jobs(
            "products",
            jobs,
            JobInputs(shared, broadcasts),
            means,
            on_result,
            lambda tensors, position: {"product": tensors[str(position)]},
        )


def test_a_job_is_run_only_for_missing_results() -> None:
    runner = JobRunner()
    runner.run_jobs(times(0, (1, 3)))
    # A cached result is not computed again.
    runner.shelf.save("00000003", {"product": torch.tensor(-1.0)})
    runner.run_jobs(times(0, (1, 2, 3)))
    assert runner.results == {(0, 0): 11, (0, 1): 12, (0, 2): -1}


def test_inputs_are_not_prepared_if_all_results_are_cached() -> None:
    runner = JobRunner()
    runner.run_jobs(times(0, (1,)))
    runner.run_jobs(times(0, (1,)))
    assert runner.shared == 1
    assert runner.progress == [("products", 1, 1)] * 2


def test_a_result_is_cached_before_it_is_passed_on() -> None:
    shelf = MemoryTensorCache()

    def on_result(job: int, position: int, answer: Mapping[str, Tensor]) -> None:
        raise RuntimeError("no room")

    inputs = JobInputs(lambda: (SHARED,), {0: {"w": torch.tensor(1.0)}})
    job = single_result_job(0, "0" * 8, Times((5, 6)))
    with pytest.raises(RuntimeError, match="no room"):
        run_cached_jobs(
            "products", [job], inputs, ComputeSettings(cache=shelf, workers=1), on_result
        )
    cached = shelf.load("0" * 8)
    assert {name: float(tensor) for name, tensor in cached.items()} == {"0": 15, "1": 16}


def test_results_of_a_gpu_are_no_results_of_the_cpu() -> None:
    shelf, found = MemoryTensorCache(), list[float]()
    inputs = JobInputs(lambda: (SHARED,), {0: {"w": torch.tensor(1.0)}})
    job = single_result_job(0, "0" * 8, Times((5,)))
    on_cpu = ComputeSettings(cache=shelf, workers=1)
    on_gpu = replace(on_cpu, device="cuda")

    def run(settings: ComputeSettings) -> float:
        run_cached_jobs(
            "products",
            [job],
            inputs,
            settings,
            lambda job, position, result: found.append(float(result["0"])),
        )
        return found.pop()

    run(on_cpu)
    shelf.save("0" * 8, {"0": torch.tensor(-1.0)})
    assert run(on_gpu) == 15
    assert run(on_cpu) == -1
    # A cluster computes on CPUs, whatever this machine has.
    assert run(replace(on_gpu, cluster="local")) == -1
