"""Workers are forked from one process that imports torch once (Linux)."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path

import pytest
import torch

from overheard.learning.workers import processes, starter
from overheard.learning.workers.job import Job, WorkerTask

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux"),
]


@dataclass(frozen=True)
class Described(Job):
    """Describes the worker."""

    def run(self, tensors: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        facts = {
            "process": os.getpid(),
            "parent": os.getppid(),
            "group": os.getpgid(0),
            "threads": torch.get_num_threads(),
            "takes Ctrl-C": signal.SIGINT not in blocked,
            "keeps memory": "MALLOC_TRIM_THRESHOLD_" in os.environ,
            "sees a GPU": os.environ.get("CUDA_VISIBLE_DEVICES") != "",
            "shares memory": gc.get_freeze_count() > 10_000,
            "draws": "overheard.drawing.svg" in sys.modules,
            "gates": "overheard.gate.sarif" in sys.modules,
        }
        return {name: torch.tensor(int(fact)) for name, fact in facts.items()}


def described() -> dict[str, int]:
    (done,) = processes.acquire(1).run_tasks([(0, WorkerTask(Described(), ()))])
    return {name: int(fact) for name, fact in done.tensors.items()}


def test_a_worker_is_forked_in_a_process_group_of_its_own_without_ctrl_c() -> None:
    processes.stop_idle(1)
    facts = described()
    assert facts["parent"] != os.getpid()
    assert facts["group"] == facts["process"]
    assert (facts["threads"], facts["takes Ctrl-C"], facts["keeps memory"]) == (1, 0, 1)
    assert facts["shares memory"]
    assert not facts["sees a GPU"]
    assert "CUDA_VISIBLE_DEVICES" not in starter.ENVIRONMENT  # this process has it meanwhile
    assert not set(starter.ENVIRONMENT) & set(os.environ) - {
        "CUDA_VISIBLE_DEVICES",
        "OMP_NUM_THREADS",
    }
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_dead_server_is_replaced_and_a_new_one_imports_what_workers_need() -> None:
    described()
    processes.stop_idle(1)
    server = forkserver._forkserver._forkserver_pid
    os.kill(server, signal.SIGKILL)
    os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
    starter.start(["overheard.drawing.svg", "overheard.no_such_module"])
    facts = described()
    assert (facts["draws"], facts["gates"]) == (1, 0)
    processes.stop_idle(1)


IDLE = """
import sys
from pathlib import Path
from overheard.learning.workers import processes

sys.path.append(Path("skipped by Python"))
workers = processes.acquire(1)
workers._starting.join()
print(workers._context.workers[0].is_alive())
"""


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path) -> None:
    folder = tmp_path / "of a stranger"
    folder.mkdir()
    for module in ("torch", "multiprocessing", "overheard"):
        (folder / f"{module}.py").write_text("print('imported')")
    script = tmp_path / "script.py"
    script.write_text(IDLE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, script],
        check=True,
        capture_output=True,
        cwd=folder,
        env=environment,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


ENDLESS = """
import torch
from overheard.learning.workers import processes
from overheard.learning.workers.job import WorkerTask
from tests.learning.jobs import Endless

worker_pool = processes.acquire(1)
worker_pool._starting.join()
print(worker_pool._context.workers[0].pid, flush=True)
list(worker_pool.run_tasks([(0, WorkerTask(Endless(), ()))]))
"""


def test_workers_of_a_killed_process_end_in_the_middle_of_a_task(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(ENDLESS)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, path], env=environment, stdout=subprocess.PIPE, text=True
    ) as caller:
        assert caller.stdout is not None
        worker = int(caller.stdout.readline())
        caller.kill()
    until = time.monotonic() + 30
    while Path(f"/proc/{worker}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()
