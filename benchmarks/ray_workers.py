"""Measure one simulation in one process, in local workers, and on Ray with 1, 2 and 4 workers.

    python benchmarks/ray_workers.py [--clients 640] [--repeats 3] [--data DATA]

The simulation is that of the attack `amortised`: virtual clients of two rounds of MNIST, each
read by all of its probes. Each way is a process of its own that starts from nothing. All give
the same readings bit for bit, which is checked. Ray with 4 workers is a cluster of two
machines, which are processes here. "start" is the time until the workers stood, or until the
cluster was joined. Seconds of a core are those of this process and of all workers.
"""

import argparse
import hashlib
import json
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter, sleep

import psutil
import torch

from overheard.core.compute_settings import ComputeSettings
from overheard.core.knowledge import Knowledge, Prior
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.data.datasets.mnist import Mnist
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.workers import processes
from overheard.questions.label_shares.attacks.amortised import PROBES
from overheard.simulation.cluster.ray_executor import connect
from overheard.simulation.simulation import run_simulation

WAYS = ("1 process", "2 processes", "Ray 1", "Ray 2", "Ray 4")
"""The ways to compute, each with its number of workers."""

CLIENT = client(0)
EXAMPLES = 200
PAUSE = 30.0
"""Seconds between two runs, as Ray's servers use fixed ports, and end some time after it."""

ROUNDS = (0, 1)


@dataclass(frozen=True, slots=True)
class Run:
    """What one simulation took.

    Args:
        start: seconds until the workers stood.
        wall: seconds of the simulation.
        core: seconds of a core of the simulation, of all processes.
        digest: of all readings.

    """

    start: float
    wall: float
    core: float
    digest: str


def main() -> None:
    """Measure every way alternately, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=640, help="virtual clients of a round")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", default=os.environ.get("OVERHEARD_DATA"))
    parser.add_argument("--way", choices=WAYS, help="measure this one alone, and print JSON")
    given = parser.parse_args()
    data = None if given.data is None else Path(given.data)
    if given.way is not None:
        print(json.dumps(asdict(_measure(given.way, given.clients, data))))
        return
    runs: dict[str, list[Run]] = {way: [] for way in WAYS}
    for _ in range(given.repeats):
        for way in WAYS:
            command = [sys.executable, __file__, "--way", way, "--clients", str(given.clients)]
            printed = subprocess.run(
                [*command, *(["--data", str(data)] if data else [])],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout
            runs[way].append(Run(**json.loads(printed.splitlines()[-1])))
            sleep(PAUSE)
    tasks = len(ROUNDS) * -(-given.clients // 32)
    print(f"{os.cpu_count()} cores, {tasks} tasks of 32 virtual clients, {given.repeats} times")
    _print_table(runs, tasks)
    if len({run.digest for way in runs.values() for run in way}) > 1:
        sys.exit("READINGS DIFFER")
    print("all readings are equal bit for bit")


def _print_table(runs: dict[str, list[Run]], tasks: int) -> None:
    alone = statistics.median(run.core for run in runs[WAYS[0]])
    print(f"{'':<14}{'start':>9}{'wall':>9}{'core':>9}{'more core a task':>20}")
    for way, measured in runs.items():
        start, wall, core = (
            statistics.median(getattr(run, part) for run in measured)
            for part in ("start", "wall", "core")
        )
        more = 1000 * (core - alone) / tasks
        print(f"{way:<14}{start:>7.1f} s{wall:>7.1f} s{core:>7.1f} s{more:>17.1f} ms")


def _measure(way: str, clients: int, data: Path | None) -> Run:
    """Run the simulation in one way."""
    kind, number = way.split(maxsplit=1)[0], int(way.strip("Ray proces"))
    view, knowledge = _attacker(clients, data)
    began = perf_counter()
    with _cluster(number) if kind == "Ray" else _local_workers(number) as address:
        start = perf_counter() - began
        compute = replace(knowledge.compute, workers=number, cluster=address)
        before, began = _core_seconds(), perf_counter()
        simulation = run_simulation(view, replace(knowledge, compute=compute), ROUNDS, PROBES)
        wall, core = perf_counter() - began, _core_seconds() - before
    digest = hashlib.blake2b(digest_size=8)
    for probe in PROBES:
        digest.update(simulation.readings[probe].numpy().tobytes())
    return Run(start, wall, core, digest.hexdigest())


def _attacker(clients: int, data: Path | None) -> tuple[View, Knowledge]:
    """Return the view of a server in two rounds, and what it knows."""
    dataset = Mnist().load(data)
    build = partial(Mlp(hidden=(64,)).build, dataset.task)
    messages = []
    for number in ROUNDS:
        start = initial_weights(build, Seed(number))
        messages.append(Message(number, SERVER, frozenset({CLIENT}), Broadcast(start)))
        delta = {name: torch.full_like(one, 0.01) for name, one in start.items()}
        messages.append(Message(number, CLIENT, frozenset({SERVER}), Update(delta, EXAMPLES)))
    knowledge = Knowledge(
        dataset.task.classes,
        build,
        dataset.test.take(torch.arange(2000)),
        Recipe(rate=0.1, epochs=1, batch=10),
        None,
        Prior(),
        ComputeSettings(virtual_clients=clients),
    )
    return View(frozenset({SERVER}), tuple(messages)), knowledge


@contextmanager
def _local_workers(number: int) -> Iterator[None]:
    """Start local worker processes, unless there is only one."""
    if number > 1:
        processes.acquire(number).release()
        while not processes.are_ready(number):
            sleep(0.05)
    yield None


@contextmanager
def _cluster(number: int) -> Iterator[str]:
    """Start a cluster with this number of cores, join it, and return its address."""
    import ray
    from ray.cluster_utils import Cluster

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    cores = (number,) if number < 4 else (2, 2)
    head = {"num_cpus": cores[0], "ray_client_server_port": port, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for more in cores[1:]:
        cluster.add_node(num_cpus=more)
    address = f"ray://127.0.0.1:{port}"
    try:
        _wait_for(port)
        connect(address)
        yield address
    finally:
        ray.shutdown()
        cluster.shutdown()


def _wait_for(port: int) -> None:
    """Wait until a first machine responds, which it does some seconds after its start."""
    deadline = monotonic() + 60
    while monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            sleep(0.1)
        else:
            return


def _core_seconds() -> float:
    """Return the seconds of a core of this process and of all that it started."""
    total = 0.0
    own = psutil.Process()
    for one in (own, *own.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


if __name__ == "__main__":
    main()
