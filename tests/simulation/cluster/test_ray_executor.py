import importlib.util
import platform
import signal
from dataclasses import replace

import pytest
import torch

from overheard.core.errors import PlanError, WorkerError
from overheard.learning.workers.job import TensorBundle, WorkerTask
from overheard.simulation.auxiliary_logits import AuxiliaryLogits
from overheard.simulation.cluster import ray_executor
from overheard.simulation.cluster.ray_executor import local_setup, run_on_ray
from overheard.simulation.simulation import run_simulation
from tests.learning.jobs import DiesAtFirst, Refuses, Scaled
from tests.simulation.small_run import (
    KillsWorker,
    Raw,
    knowledge,
    raw_readings,
    server_view,
)

pytestmark = pytest.mark.slow

NUMBERS = TensorBundle({"numbers": torch.tensor([1.0, 3.0])})

with_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray, an extra, is not installed"
)


@pytest.fixture(scope="module")
def ray():
    """Use a Ray on this machine, and stop it after the tests of this file."""
    module = pytest.importorskip("ray")
    yield module
    module.shutdown()


# Ray leaves sockets and files to the garbage collector.
@with_ray
@pytest.mark.deployment
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestOnThisMachine:
    def test_the_handler_of_sigterm_is_restored(self, ray) -> None:
        ray.shutdown()
        received = list[int]()
        before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
        try:
            list(run_on_ray([], "local"))
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.signal(signal.SIGTERM, before)
        assert received == [signal.SIGTERM]

    def test_gives_the_same_bits_as_one_process(self, ray) -> None:
        for members in (None, 3):
            attacker = knowledge()
            on_ray = replace(attacker, compute=replace(knowledge().compute, cluster="local"))
            probes = (Raw(), AuxiliaryLogits())
            alone, shared = (
                run_simulation(server_view(), k, (0, 1), probes, cohort_size=members)
                for k in (attacker, on_ray)
            )
            assert all(alone.readings[probe].equal(shared.readings[probe]) for probe in probes)

    def test_a_killed_worker_changes_no_bit(self, ray, tmp_path) -> None:
        probe, attacker = KillsWorker(str(tmp_path / "died")), knowledge()
        on_ray = replace(attacker, compute=replace(attacker.compute, cluster="local"))
        survived = raw_readings(on_ray, probe)
        assert (tmp_path / "died").exists()
        assert survived.equal(raw_readings(knowledge()))

    def test_a_task_that_kills_all_workers_is_given_up(self, ray, tmp_path) -> None:
        task = WorkerTask(DiesAtFirst(str(tmp_path), 99), (NUMBERS,))
        with pytest.raises(WorkerError, match="died 4 times"):
            list(run_on_ray([(0, task)], "local"))

    def test_the_error_of_a_job_itself_is_raised(self, ray) -> None:
        with pytest.raises(PlanError, match="change the plan"):
            list(run_on_ray([(0, WorkerTask(Refuses(), (NUMBERS,)))], "local"))

    def test_a_machine_with_another_version_is_refused_by_name(
        self, ray, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = replace(local_setup(), overheard="0.0.0")
        monkeypatch.setattr(ray_executor, "local_setup", lambda: other)
        expected = f"same versions .* {platform.node()} has overheard .* instead of 0.0.0"
        with pytest.raises(PlanError, match=expected):
            list(run_on_ray([(0, WorkerTask(Scaled(1.0), (NUMBERS,)))], "local"))

    def test_closing_early_leaves_no_task_running(self, ray) -> None:
        tasks = enumerate(WorkerTask(Scaled(1.0), (NUMBERS,)) for _ in range(50))
        results = run_on_ray(tasks, "local")
        next(results)
        results.close()
        again = list(run_on_ray([(0, WorkerTask(Scaled(2.0), (NUMBERS,)))], "local"))
        assert again[0].tensors["scaled"].tolist() == [2.0, 6.0]
