"""Worker processes give the bits of the sequential engine, and none is left over."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import islice

import pytest
import torch
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask, TrainingJob
from overheard.learning.workers import processes
from overheard.learning.workers.processes import WorkerError, acquire_for_training
from tests.learning.cases import (
    CLIENTS,
    CONVOLUTIONS,
    IMAGES,
    MLP,
    READING,
    RECIPES,
    SEED,
    TABLE,
    TEXTS,
    dropping,
    pool_of,
    same_bits,
    start_of,
)
from tests.learning.interrupted import interrupt

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers inherit a connection")

CASES = {
    "mlp": (MLP, TABLE),
    "convolutions": (CONVOLUTIONS, IMAGES),
    "dropout": (dropping, TABLE),
    "reading": (READING, TEXTS),
}


def train(build, task, members=CLIENTS, recipe=RECIPES["momentum"], **settings):
    start, pool = start_of(build, torch.float32), pool_of(task, torch.float32)
    return train_cohort(build, start, pool, members, recipe, seed=SEED, round=3, **settings)


def lesson(build, task):
    start, pool = start_of(build), pool_of(task, torch.float64)
    return TrainingJob(build, start, pool, RECIPES["sgd"], SEED, 3, torch.device("cpu"))


@pytest.mark.parametrize("recipe", ["momentum", "smoothed", "rated"])
@pytest.mark.parametrize("case", CASES)
def test_workers_give_the_bits_of_the_sequential_engine(case, recipe):
    build, task = CASES[case]
    here = list(train(build, task, recipe=RECIPES[recipe], engine="sequential"))
    there = list(train(build, task, recipe=RECIPES[recipe], engine="processes", workers=2))
    assert [each.client for each in there] == list(CLIENTS)
    for one, other in zip(here, there, strict=True):
        assert same_bits(one.delta, other.delta)
        assert one.loss == other.loss


def test_workers_are_reused():
    list(train(MLP, TABLE, engine="processes", workers=2))
    assert processes.are_ready(2)
    worker_pool = acquire_for_training(lesson(MLP, TABLE), 2)
    before = [worker.pid for worker in worker_pool._context.workers]
    worker_pool.release()
    list(train(CONVOLUTIONS, IMAGES, engine="processes", workers=2))
    worker_pool = acquire_for_training(lesson(MLP, TABLE), 2)
    assert [worker.pid for worker in worker_pool._context.workers] == before
    worker_pool.release()


@pytest.mark.slow
def test_a_caller_that_stops_early_ends_the_workers():
    worker_pool = acquire_for_training(lesson(MLP, TABLE), 1)
    trained = worker_pool.train(CLIENTS, 1)
    next(trained)
    trained.close()
    # The process is gone, and was waited for: it left no zombie behind.
    assert worker_pool._context.workers[0].exitcode == -signal.SIGKILL
    assert not processes.are_ready(1)


@pytest.mark.parametrize("window", [1, len(CLIENTS), 99])
def test_a_caller_that_took_every_result_leaves_the_workers_idle(window):
    worker_pool = acquire_for_training(lesson(MLP, TABLE), 1)
    trained = worker_pool.train(CLIENTS, window)
    assert [each.client for each in islice(trained, len(CLIENTS))] == list(CLIENTS)
    assert processes.are_ready(1)
    trained.close()
    assert worker_pool._context.workers[0].exitcode is None
    assert processes.are_ready(1)


def test_an_idle_pool_can_be_ended():
    worker_pool = acquire_for_training(lesson(MLP, TABLE), 1)
    list(worker_pool.train(CLIENTS, 1))
    processes.stop_idle(1)
    assert worker_pool._context.workers[0].exitcode is not None
    assert not processes.are_ready(1)
    processes.stop_idle(1)  # There is none any more.


def test_names_a_dead_worker():
    worker_pool = acquire_for_training(lesson(MLP, TABLE), 1)
    number = worker_pool._context.workers[0].pid
    os.kill(number, signal.SIGKILL)
    with pytest.raises(WorkerError, match=f"{number} died .exit code -9.*fewer workers"):
        list(worker_pool.train(CLIENTS, 2))
    assert not processes.are_ready(1)


@pytest.mark.slow
def test_names_a_worker_that_died_among_clients():
    worker_pool = acquire_for_training(lesson(MLP, TABLE), 1)
    number = worker_pool._context.workers[0].pid
    results = worker_pool.train(CLIENTS, 1)
    next(results)
    os.kill(number, signal.SIGKILL)
    # The executor sees the death before the next client is sent.
    while worker_pool._executor._broken is False:
        time.sleep(0.01)
    with pytest.raises(WorkerError, match=f"{number} died .exit code -9"):
        list(results)


@pytest.mark.slow
def test_reports_an_error_in_a_worker():
    members = (ClientTask("client/9", torch.tensor([99])),)
    with pytest.raises(WorkerError, match=r"client/9(.|\n)*IndexError"):
        list(train(MLP, TABLE, members, engine="processes", workers=1))


@pytest.mark.slow
def test_refuses_a_model_that_cannot_be_sent():
    def local() -> nn.Module:
        return MLP()

    with pytest.raises(PlanError, match=r"cannot be sent.*importable module"):
        list(train(local, TABLE, engine="processes", workers=1))


def test_refuses_to_compute_on_a_gpu():
    with pytest.raises(PlanError, match="computes on the CPU"):
        train(MLP, TABLE, engine="processes", device="cuda")


SCRIPT = """
import torch
from functools import partial
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.training_job import ClientTask
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import train_cohort

def build_here():
    return torch.nn.Sequential(torch.nn.Linear(3, 2))

for build in (partial(Mlp().build, Task((3,), ("a", "b"))), build_here):
    trained = train_cohort(
        build,
        initial_weights(build, Seed(0)),
        Examples(torch.ones(4, 3), torch.zeros(4, dtype=torch.int64)),
        [ClientTask("client/0", torch.arange(4))],
        Recipe(rate=0.1, epochs=1, batch=2),
        seed=Seed(0),
        round=0,
        engine="processes",
        workers=1,
    )
    print(len(list(trained)))
"""


ENDLESS = (
    SCRIPT.split("def build_here", maxsplit=1)[0]
    + """
from overheard.learning.training_job import TrainingJob
from overheard.learning.workers.processes import acquire_for_training

build = partial(Mlp().build, Task((3,), ("a", "b")))
pool = Examples(torch.ones(4, 3), torch.zeros(4, dtype=torch.int64))
recipe = Recipe(rate=0.1, epochs=10**9, batch=2)
start = initial_weights(build, Seed(0))
job = TrainingJob(build, start, pool, recipe, Seed(0), 0, torch.device("cpu"))
worker_pool = acquire_for_training(job, 1)
print(worker_pool._context.workers[0].pid, flush=True)
list(worker_pool.train([ClientTask("client/0", torch.arange(4))], 1))
"""
)


@pytest.mark.slow
def test_a_script_needs_no_guard_but_its_own_builder_is_refused(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, path], check=False, capture_output=True, text=True, timeout=180
    )
    assert done.stdout == "1\n"
    assert "PlanError: model: it cannot be sent" in done.stderr


FORK = """
import os
import sys
import torch
from overheard.core.errors import PlanError
from overheard.learning.workers import processes, starter

workers = processes.acquire(1)
workers._starting.join()
workers.release()
if not os.fork():
    starter.start_for(2)
    try:
        processes.acquire(1)
    except PlanError as error:
        print(error, flush=True)
    sys.exit()
os.wait()
print(workers._context.workers[0].exitcode)
"""


@pytest.mark.slow
def test_a_fork_neither_uses_nor_ends_the_workers(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(FORK)
    done = subprocess.run(
        [sys.executable, path], check=True, capture_output=True, text=True, timeout=60
    )
    refusal, exit_code = done.stdout.splitlines()
    assert "no fork of a process that had workers" in refusal
    assert exit_code == "None"


THREAD = """
import threading
import torch
from overheard.core.errors import PlanError
from overheard.learning.workers import processes

def use_workers():
    threading.main_thread().join()
    try:
        processes.acquire(1)
    except PlanError as error:
        print(error)

threading.Thread(target=use_workers).start()
"""


@pytest.mark.slow
def test_refuses_workers_once_the_main_thread_has_ended(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(THREAD)
    done = subprocess.run(
        [sys.executable, path], check=True, capture_output=True, text=True, timeout=60
    )
    assert "whose main thread has not ended" in done.stdout


def test_uses_a_new_pool_of_the_same_size():
    start = start_of(MLP, torch.float32)
    for sign in (1, -1):
        pool = pool_of(TABLE, torch.float32)
        pool = Examples(pool.inputs * sign, pool.labels)
        run = partial(train_cohort, MLP, start, pool, CLIENTS, RECIPES["sgd"])
        here = [each.delta for each in run(seed=SEED, round=3, engine="sequential")]
        there = [each.delta for each in run(seed=SEED, round=3, engine="processes", workers=2)]
        assert all(map(same_bits, here, there))


@pytest.mark.slow
def test_ctrl_c_ends_the_caller_and_its_workers(tmp_path):
    stderr, worker = interrupt(ENDLESS, tmp_path)
    assert stderr.rstrip().endswith("KeyboardInterrupt")
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


@pytest.mark.slow
def test_workers_are_started_once_they_save_time_and_change_no_bit(monkeypatch):
    # Three workers, as no other test asks for three; nothing is worth calling them at first.
    here = list(train(CONVOLUTIONS, IMAGES, engine="sequential"))
    monkeypatch.setattr(processes, "MIN_SAVED_SECONDS", 1e9)
    before = list(train(CONVOLUTIONS, IMAGES, workers=3))
    assert not processes.are_ready(3)
    monkeypatch.setattr(processes, "MIN_SAVED_SECONDS", 0.0)
    meanwhile = list(train(CONVOLUTIONS, IMAGES, workers=3))
    deadline = time.monotonic() + 120
    while not processes.are_ready(3) and time.monotonic() < deadline:
        time.sleep(0.05)
    after = list(train(CONVOLUTIONS, IMAGES, workers=3))
    worker_pool = acquire_for_training(lesson(MLP, TABLE), 3)
    worker_pool.stop()
    for one, *others in zip(here, before, meanwhile, after, strict=True):
        assert all(same_bits(one.delta, other.delta) for other in others)


def test_workers_that_cannot_load_the_model_are_not_started_again(monkeypatch):
    monkeypatch.setattr(processes, "_SAVABLE_SECONDS", {})
    processes.disable(3)
    processes.record_saving(1e9, 3)
    assert not processes.are_ready(3)
