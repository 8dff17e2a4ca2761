"""Workers are forked from one process that imports torch once (Linux)."""

import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from overheard.learning.workers import processes, starter
from overheard.learning.workers.job import Job, WorkerTask
from overheard.learning.workers.processes import WorkerPool
from overheard.learning.workers.starter import ForkedWorker
from overheard.learning.workers.worker_process import WorkerProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not starter.is_supported(), reason="workers are forked on Linux"),
]


HIGH = 2000
"""A file descriptor that `select.select` refuses."""


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    process = WorkerProcess(None)
    process.receive("starting")
    yield process
    process.kill()
    process.process.wait()
    process.connection.close()


def test_a_worker_is_a_child_of_the_starter_in_a_process_group_of_its_own(
    worker: WorkerProcess,
) -> None:
    assert isinstance(worker.process, ForkedWorker)
    assert os.getpgid(worker.process.pid) == worker.process.pid
    status = Path(f"/proc/{worker.process.pid}/status").read_text(encoding="utf-8")
    (parent,) = [line.split()[1] for line in status.splitlines() if line.startswith("PPid")]
    assert parent != str(os.getpid())


def test_waiting_tells_the_exit_code_or_that_the_worker_runs(worker: WorkerProcess) -> None:
    assert worker.process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        worker.process.wait(0.01)
    worker.kill()
    assert worker.process.wait() == -signal.SIGKILL
    assert worker.process.poll() == worker.process.returncode == -signal.SIGKILL
    worker.kill()  # There is nothing left to kill.


def test_a_worker_whose_connection_closes_ends_without_an_error() -> None:
    worker = WorkerProcess(None)
    worker.receive("starting")
    worker.connection.close()
    assert worker.process.wait(60.0) == 0


def test_a_dead_starter_is_replaced(worker: WorkerProcess) -> None:
    before = starter._RUNNING[0]
    before._process.kill()
    before._process.wait()
    again = WorkerProcess(None)
    again.receive("starting")
    assert starter._RUNNING[0] is not before
    again.kill()
    assert again.process.wait() == -signal.SIGKILL
    again.connection.close()
    # Nobody knows how a worker of the dead starter ended.
    assert worker.process.wait() == starter.LOST


def test_a_starter_that_cannot_import_torch_leaves_workers_to_start_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starter._discard()
    monkeypatch.setattr(starter, "STARTER_CODE", "raise SystemExit({})")
    worker = WorkerProcess(None)
    assert isinstance(worker.process, subprocess.Popen)
    worker.receive("starting")
    worker.kill()
    worker.process.wait()
    worker.connection.close()
    starter._discard()


def test_other_modules_need_another_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    starter.start()
    before = starter._RUNNING[0]
    monkeypatch.setattr(sys, "path", [*sys.path, "/somewhere/else"])
    assert not starter.is_prepared()
    starter.start()
    assert starter._RUNNING[0] is not before
    monkeypatch.undo()
    starter.start()


@dataclass(frozen=True)
class IsImported(Job):
    """Tells whether a worker had imported a module before its job."""

    name: str

    def run(self, tensors: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        return {"imported": torch.tensor(float(self.name in sys.modules))}


def test_workers_have_the_modules_that_the_starter_imported() -> None:
    starter._discard()
    imported, other = "overheard.drawing.svg", "overheard.gate.sarif"
    starter.start([imported, "overheard.no_such_module"])
    tasks = [(n, WorkerTask(IsImported(name), ())) for n, name in enumerate((imported, other))]
    pool = WorkerPool(1)
    found = {one.number: float(one.tensors["imported"]) for one in pool.run_tasks(tasks)}
    processes.stop_idle(1)
    pool.stop()
    starter._discard()
    assert found == {0: 1.0, 1: 0.0}


def test_an_answer_is_seen_on_a_connection_with_a_high_number() -> None:
    here, there = socket.socketpair()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < HIGH + 100:
        pytest.skip("this system allows no process so many open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, HIGH + 100), hard))
    try:
        with there, here, socket.socket(fileno=fcntl.fcntl(here, fcntl.F_DUPFD, HIGH)) as high:
            one = object.__new__(starter._Starter)
            one._socket, one._is_ready = high, False
            assert not one.is_ready()
            there.send(b"0")
            assert one.is_ready()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
