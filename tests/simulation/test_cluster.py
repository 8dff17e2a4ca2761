import importlib.util
import os
import signal
import socket
import sys
from dataclasses import replace

import pytest
import torch

from overheard.core.errors import PlanError, WorkerError
from overheard.learning.workers.job import Bundle, WorkerTask
from overheard.simulation.answers import Answers
from overheard.simulation.bank import build_bank
from overheard.simulation.cluster import on_cluster
from tests.learning.jobs import DiesAtFirst, Refuses, Scaled
from tests.simulation.world import Deadly, Raw, knowledge, run

NUMBERS = Bundle({"numbers": torch.tensor([1.0, 3.0])})

with_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray, an extra, is not installed"
)


def test_without_ray_the_mend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PlanError, match=r"needs Ray: pip install overheard\[ray\]"):
        list(on_cluster([], "local"))


@pytest.mark.parametrize("address", ["ray://127.0.0.1:1", "127.0.0.1:1", "auto", "ray://one"])
def test_a_cluster_that_does_not_answer_is_told_at_once(address: str) -> None:
    with pytest.raises(PlanError, match="does not answer: give 'local', or 'ray://host:port'"):
        list(on_cluster([], address))


@with_ray
def test_without_its_client_ray_cannot_join_a_cluster_and_the_mend_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Which pip install ray[client] brings, and pip install ray does not.
    monkeypatch.setitem(sys.modules, "grpc", None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(PlanError, match=r"cannot be joined: .* have ray\[client\] here"):
            list(on_cluster([], address))


@pytest.fixture(scope="module")
def ray():
    """A Ray on this machine, ended after the tests of this file."""
    module = pytest.importorskip("ray")
    yield module
    module.shutdown()


# Ray leaves sockets and files to the garbage collector.
@with_ray
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestOnThisMachine:
    def test_whoever_answered_sigterm_before_ray_still_does(self, ray) -> None:
        ray.shutdown()
        heard = list[int]()
        before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
        try:
            list(on_cluster([], "local"))
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.signal(signal.SIGTERM, before)
        assert heard == [signal.SIGTERM]

    def test_gives_the_bits_of_one_process(self, ray) -> None:
        for members in (None, 3):
            known = knowledge()
            there = replace(known, means=replace(knowledge().means, cluster="local"))
            probes = (Raw(), Answers())
            alone, shared = (
                build_bank(run(), k, (0, 1), probes, members=members) for k in (known, there)
            )
            assert all(alone.read[probe].equal(shared.read[probe]) for probe in probes)

    def test_every_task_is_done_once_elsewhere(self, ray) -> None:
        tasks = enumerate(WorkerTask(Scaled(float(n)), (NUMBERS,)) for n in range(9))
        work = list(on_cluster(tasks, "local"))
        assert sorted(piece.number for piece in work) == list(range(9))
        for piece in work:
            assert piece.tensors["scaled"].tolist() == [piece.number, 3 * piece.number]
            assert int(piece.tensors["worker"]) != os.getpid()

    def test_a_worker_killed_at_its_work_moves_no_bit(self, ray, tmp_path) -> None:
        deadly, known = Deadly(str(tmp_path / "died")), knowledge()
        there = replace(known, means=replace(known.means, cluster="local"))
        survived = build_bank(run(), there, (0, 1), [deadly]).read[deadly]
        assert (tmp_path / "died").exists()
        assert survived.equal(build_bank(run(), knowledge(), (0, 1), [Raw()]).read[Raw()])

    def test_a_task_that_kills_everyone_is_given_up(self, ray, tmp_path) -> None:
        task = WorkerTask(DiesAtFirst(str(tmp_path), 99), (NUMBERS,))
        with pytest.raises(WorkerError, match="died 4 times"):
            list(on_cluster([(0, task)], "local"))

    def test_an_error_of_a_job_is_raised_as_itself(self, ray) -> None:
        with pytest.raises(PlanError, match="change the plan"):
            list(on_cluster([(0, WorkerTask(Refuses(), (NUMBERS,)))], "local"))

    def test_who_stops_listening_leaves_nothing_under_way(self, ray) -> None:
        tasks = enumerate(WorkerTask(Scaled(1.0), (NUMBERS,)) for _ in range(50))
        work = on_cluster(tasks, "local")
        next(work)
        work.close()
        again = list(on_cluster([(0, WorkerTask(Scaled(2.0), (NUMBERS,)))], "local"))
        assert again[0].tensors["scaled"].tolist() == [2.0, 6.0]
