import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from overheard.core.compute_settings import ComputeSettings
from overheard.core.defense import BuildModel
from overheard.core.knowledge import Prior
from overheard.core.messages import Broadcast, Message
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.core.task import Task as LearningTask
from overheard.core.view import View
from overheard.learning.initialization import initial_weights
from overheard.learning.workers import processes
from overheard.learning.workers.job import TensorBundle, WorkerTask
from overheard.simulation.auxiliary_logits import AuxiliaryLogits
from overheard.simulation.cached_jobs import run_tasks
from overheard.simulation.simulation import run_simulation
from tests.learning.cases import CONVOLUTIONS, IMAGES, TEXTS, WORDS, pool_of
from tests.learning.jobs import Scaled
from tests.simulation.small_run import (
    KillsWorker,
    Raw,
    build,
    knowledge,
    raw_readings,
    server_view,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers inherit a connection")

PROBES = (Raw(), AuxiliaryLogits())


@pytest.fixture
def two_workers() -> None:
    """Start two workers, and wait until they are ready."""
    processes.acquire(2).release()
    deadline = time.monotonic() + 120
    while not processes.are_ready(2) and time.monotonic() < deadline:
        time.sleep(0.05)


def pids(count: int, means: ComputeSettings) -> set[int]:
    bundle = TensorBundle({"numbers": torch.ones(1, dtype=torch.int64)})
    tasks = (WorkerTask(Scaled(1), (bundle,)) for _ in range(count))
    return {int(done.tensors["worker"]) for done in run_tasks(tasks, count, means)}


@pytest.mark.parametrize("members", [None, 3])
def test_workers_give_the_same_bits_as_one_process(
    two_workers: None, members: int | None
) -> None:
    alone, shared = (
        run_simulation(
            server_view(), knowledge(workers=workers), (0, 1), PROBES, cohort_size=members
        )
        for workers in (1, 2)
    )
    assert alone.counts.equal(shared.counts)
    assert all(alone.readings[probe].equal(shared.readings[probe]) for probe in PROBES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("builder", "task"), [(CONVOLUTIONS, IMAGES), (WORDS, TEXTS)], ids=["images", "texts"]
)
def test_workers_give_the_same_bits_for_all_models(
    two_workers: None, builder: BuildModel, task: LearningTask
) -> None:
    start = initial_weights(builder, Seed(0))
    message = Message(0, SERVER, frozenset({client(0)}), Broadcast(start))
    view = View(frozenset({SERVER}), (message,))
    alone, shared = (
        run_simulation(view, replace(attacker, build_model=builder), (0,), PROBES).readings
        for attacker in (
            knowledge(
                auxiliary=pool_of(task, torch.float32, 60),
                workers=workers,
                prior=Prior((), (9, 30)),
            )
            for workers in (1, 2)
        )
    )
    assert all(alone[probe].equal(shared[probe]) for probe in PROBES)


@pytest.mark.slow
def test_a_killed_worker_changes_no_bit(two_workers: None, tmp_path: Path) -> None:
    mark = tmp_path / "died"
    probe, attacker = KillsWorker(str(mark)), knowledge(workers=2)
    survived = raw_readings(attacker, probe)
    assert mark.exists()
    assert survived.equal(raw_readings(knowledge()))


def test_no_worker_is_started_for_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_SAVABLE_SECONDS", {})
    assert pids(3, ComputeSettings(workers=4)) == {os.getpid()}
    assert not processes.are_ready(4)
    assert 4 not in processes._IDLE


def test_gpu_tasks_run_in_this_process(two_workers: None) -> None:
    assert pids(3, ComputeSettings(workers=2, device="cuda")) == {os.getpid()}


def test_a_builder_that_workers_cannot_import_is_trained_here(two_workers: None) -> None:
    attacker = knowledge(workers=2)

    def local() -> nn.Module:
        return build()

    shared = raw_readings(replace(attacker, build_model=local))
    assert shared.equal(raw_readings(knowledge()))
