"""A cluster of two machines, which are processes here, and which fail in a simulation."""

import importlib.util
import os
import platform
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from torch import Tensor

from overheard.core.errors import PlanError, WorkerError
from overheard.simulation.cluster import ray_executor
from tests.simulation.small_run import CountingCache, knowledge, raw_readings

pytestmark = [
    pytest.mark.deployment,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="ray, an extra, is not installed"
    ),
    # Ray leaves sockets, processes and files to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Ray Client connection timed out:UserWarning"),
]

VIRTUAL = 640
"""Virtual clients: twenty chunks a round, forty tasks."""


class TwoMachines:
    """A first machine, and a second one with two cores that joined it."""

    def __init__(self, first_cores: int, second_path: Path | None = None) -> None:
        from ray.cluster_utils import Cluster

        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.address = f"ray://127.0.0.1:{port}"
        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": first_cores,
                "ray_client_server_port": port,
                "include_dashboard": False,
            },
        )
        with pytest.MonkeyPatch.context() as patch:
            if second_path is not None:
                patch.setenv("PYTHONPATH", str(second_path), prepend=os.pathsep)
            self._second = self._cluster.add_node(num_cpus=2)
        _wait_for_server(port)

    def kill_first(self) -> None:
        self._kill(self._cluster.head_node)

    def kill_second(self) -> None:
        self._kill(self._second)

    def shut_down(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()

    def _kill(self, machine) -> None:
        for processes in machine.all_processes.values():
            for one in processes:
                one.process.kill()


def _wait_for_server(port: int) -> None:
    """Wait until Ray's client server, which starts last, takes connections."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., TwoMachines]]:
    """Return a function that starts a cluster, whose jobs can import the tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()), prepend=os.pathsep)
    monkeypatch.setattr(ray_executor, "PATIENCE", 5.0)
    started = list[TwoMachines]()

    def start(first_cores: int, second_path: Path | None = None) -> TwoMachines:
        started.append(TwoMachines(first_cores, second_path))
        return started[-1]

    yield start
    for one in started:
        one.shut_down()


def simulate(
    cluster: str | None, cache: CountingCache, after_ten: Callable[[], None] = lambda: None
) -> Tensor:
    """Return the readings of all virtual clients; call a function after ten tasks."""

    def on_progress(activity: str, done: int, total: int) -> None:
        if done == 10:
            after_ten()

    attacker = knowledge(virtual=VIRTUAL, shelf=cache)
    compute = replace(attacker.compute, cluster=cluster, on_progress=on_progress)
    return raw_readings(replace(attacker, compute=compute))


@pytest.fixture(scope="module")
def alone() -> Tensor:
    """Return the readings of one process."""
    return simulate(None, CountingCache())


def test_a_machine_that_dies_changes_no_bit_and_computes_nothing_twice(start, alone) -> None:
    machines, cache = start(first_cores=1), CountingCache()
    readings = simulate(machines.address, cache, machines.kill_second)
    assert readings.equal(alone)
    assert len(cache.saved) == len(set(cache.saved))


def test_what_a_lost_cluster_computed_is_kept(start, alone) -> None:
    machines, cache = start(first_cores=1), CountingCache()
    with pytest.raises(WorkerError, match="was lost: start it again and run the same command"):
        simulate(machines.address, cache, machines.kill_first)
    kept = list(cache.saved)
    assert len(kept) >= 10
    assert simulate(None, cache).equal(alone)
    assert cache.saved[: len(kept)] == kept
    assert len(cache.saved) == len(set(cache.saved))


def test_a_cluster_without_cores_is_given_up(start) -> None:
    machines, cache = start(first_cores=0), CountingCache()
    with pytest.raises(WorkerError, match="no machine of the Ray cluster has a core"):
        simulate(machines.address, cache, machines.kill_second)
    assert len(cache.saved) >= 10


def test_a_machine_with_another_version_is_named(start, tmp_path) -> None:
    package = tmp_path / "overheard-0.0.1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: overheard\nVersion: 0.0.1")
    machines = start(first_cores=0, second_path=tmp_path)
    expected = rf"own modules on every machine.* {platform.node()} has overheard 0\.0\.1"
    with pytest.raises(PlanError, match=expected):
        simulate(machines.address, CountingCache())


def test_a_machine_without_the_package_is_refused(start, tmp_path) -> None:
    (tmp_path / "overheard.py").write_text("raise ModuleNotFoundError(\"No module named 'o'\")")
    machines = start(first_cores=0, second_path=tmp_path)
    with pytest.raises(PlanError, match=r"own modules on every machine.* No module named 'o'"):
        simulate(machines.address, CountingCache())
