"""Measure the overhead of recording a Flower run, and the speed of writing a recording.

    python benchmarks/recording.py [--clients 1000] [--rounds 3] [--pairs 5] [--folder DIR]

Writing: in each round, the clients reply at once with a model of a million float32 parameters
each. The run ends when everything is on disk. For comparison, the same number of bytes is
written to as many files, each flushed. Each takes 4 GB per round for 1,000 clients, one after
the other. Overhead: ten clients train such a model in this process, with and without a
recording, in turn. The app of examples/flower runs in Flower's simulation too, timed by
Flower's own output. Exits immediately if Flower is not installed.
"""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, sleep

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from _pairs import print_overhead

PARAMETERS, KINDS = 1_000_000, 16
"""Numbers in a model, and number of different replies, which clients share."""

LEAST_SPEED = 200.0
"""Required MB/s (1e6 bytes) of writing a recording; the disk's speed if that is lower."""

MOST_OVERHEAD = 1.05
"""Largest accepted duration of a recorded run, relative to a plain one."""

TRAINERS, EXAMPLES, BATCH, EPOCHS = 10, 600, 32, 5
TRAINED_ROUNDS = 3

EXAMPLE = Path(__file__).parents[1] / "examples" / "flower"
FINISHED = re.compile(r"Strategy execution finished in ([0-9.]+)s")
PATIENCE = 600.0


def make_grid(reply: "Callable[[Message], Message]", nodes: int) -> "Grid":
    """Return a grid of so many nodes in this process."""

    class Nodes(Grid):
        """A grid that replies to messages in turn."""

        def set_run(self, run: object) -> None:
            """Ignore the run."""

        @property
        def run(self) -> object:
            """None, as there is no run."""
            return None

        def create_message(self, *settings: object) -> "Message":
            """Not supported."""
            raise NotImplementedError

        def get_node_ids(self) -> "Iterable[int]":
            """Return the numbers from 1 on."""
            return range(1, nodes + 1)

        def push_messages(self, messages: "Iterable[Message]") -> "Iterable[str]":
            """Not supported."""
            raise NotImplementedError

        def pull_messages(self, message_ids: "Iterable[str]") -> "Iterable[Message]":
            """Not supported."""
            raise NotImplementedError

        def send_and_receive(
            self, messages: "Iterable[Message]", *, timeout: float | None = None
        ) -> "Iterable[Message]":
            """Reply to all messages."""
            return [reply(message) for message in messages]

    return Nodes()


def recording_speed(folder: Path, clients: int, rounds: int) -> float:
    """Return the MB/s of recording rounds with so many replies, until all is on disk."""
    generator = np.random.default_rng(0)
    start, *records = (
        ArrayRecord(
            {"weight": Array(generator.standard_normal((1000, 1000), dtype=np.float32))}
        )
        for _ in range(1 + KINDS)
    )
    metrics = MetricRecord({"num-examples": 5, "loss": 0.5})

    def reply(message: "Message") -> "Message":
        arrays = records[message.metadata.dst_node_id % KINDS]
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    began = perf_counter()
    grid = RecordingGrid(make_grid(reply, clients), folder)
    for number in range(1, rounds + 1):
        config = ConfigRecord({"server-round": number})
        content = RecordDict({"arrays": start, "config": config})
        grid.send_and_receive(Message(content, node, "train") for node in range(1, clients + 1))
    grid.finish()
    took = perf_counter() - began
    if grid.stopped is not None:
        sys.exit(f"the recording stopped: {grid.stopped}")
    written = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    rmtree(folder)
    return written / took / 1e6


def disk_speed(folder: Path, files: int) -> float:
    """Return the MB/s of writing so many files of that size, each flushed before the next."""
    generator = np.random.default_rng(0)
    contents = [generator.bytes(4 * PARAMETERS) for _ in range(KINDS)]
    folder.mkdir()
    began = perf_counter()
    for number in range(files):
        with (folder / str(number)).open("wb") as file:
            file.write(contents[number % KINDS])
            file.flush()
            os.fsync(file.fileno())
    took = perf_counter() - began
    rmtree(folder)
    return 4 * PARAMETERS * files / took / 1e6


@dataclass(frozen=True, slots=True)
class Duration:
    """Wall-clock and CPU seconds of a run."""

    wall: float
    cores: float


def time_training(folder: Path | None) -> Duration:
    """Time a federation that trains in this process, recorded if there is a folder."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 210), nn.ReLU(), nn.Linear(210, 10)
    )
    inputs, labels = torch.randn(EXAMPLES, 784), torch.randint(0, 10, (EXAMPLES,))
    initial = ArrayRecord(model.state_dict())

    def reply(message: "Message") -> "Message":
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for rows in torch.cat([torch.randperm(EXAMPLES) for _ in range(EPOCHS)]).split(BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
            optimizer.step()
        content = RecordDict(
            {
                "arrays": ArrayRecord(model.state_dict()),
                "metrics": MetricRecord({"num-examples": EXAMPLES}),
            }
        )
        return Message(content, reply_to=message)

    plain_grid = make_grid(reply, TRAINERS)
    began, busy = perf_counter(), process_time()
    grid = plain_grid if folder is None else RecordingGrid(plain_grid, folder)
    strategy = FedAvg(fraction_evaluate=0.0)
    strategy.start(grid=grid, initial_arrays=initial, num_rounds=TRAINED_ROUNDS)
    if folder is not None:
        grid.finish()
    duration = Duration(perf_counter() - began, process_time() - busy)
    if folder is not None:
        rmtree(folder)
    return duration


def time_example(folder: Path, recording: Path | None) -> float:
    """Return the seconds of the example's strategy in Flower's simulation of ten clients."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = folder / "flwr"
    settings.mkdir(exist_ok=True)
    (settings / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{port}"\n'
        "insecure = true\n"
    )
    programs = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "FLWR_HOME": str(settings),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    link = subprocess.Popen(
        [
            programs / "flower-superlink", "--insecure", "--simulation",
            "--host", "127.0.0.1", "--port", str(port),
            "--disable-runtime-dependency-installation",
        ],
        env=environment,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        while True:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            sleep(0.2)
        result = subprocess.run(
            [
                programs / "flwr", "run", EXAMPLE, "--stream",
                "--federation-config", "num-supernodes=10",
                "--run-config", f"recording='{recording or ''}'",
            ],
            env=environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
    finally:
        with suppress(ProcessLookupError):
            os.killpg(link.pid, signal.SIGKILL)
        link.wait()
    output = result.stdout + result.stderr
    match = FINISHED.search(output)
    if match is None:
        sys.exit(f"the example failed:\n{output[-4000:]}")
    if recording is not None:
        rmtree(recording)
    return float(match[1])


def main() -> None:
    """Measure speed and overhead, and compare them with their bars."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds to write, then as many plain files"
    )
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--example", type=int, default=3, help="pairs of runs of the example")
    parser.add_argument("--folder", type=Path, help="folder on the disk to measure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    print(f"load {os.getloadavg()[0]:.1f} before the first run", flush=True)
    with TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = Path(temporary)
        if arguments.rounds:
            speed = recording_speed(folder / "run", arguments.clients, arguments.rounds)
            disk = disk_speed(folder / "bare", arguments.clients * arguments.rounds)
            is_reached = speed >= min(LEAST_SPEED, disk)
            print(
                f"{arguments.clients} clients of {PARAMETERS:,} parameters, "
                f"{arguments.rounds} rounds: recorded at {speed:.0f} MB/s, plain files at "
                f"{disk:.0f} MB/s   >= {LEAST_SPEED:.0f} MB/s or the disk's  "
                f"{'reached' if is_reached else 'MISSED'}",
                flush=True,
            )
        pairs = [
            (time_training(None), time_training(folder / "run")) for _ in range(arguments.pairs)
        ]
        if pairs:
            what = f"{TRAINED_ROUNDS} rounds of {TRAINERS} clients in one process"
            walls = [(recorded.wall, plain.wall) for plain, recorded in pairs]
            print_overhead(what, walls, MOST_OVERHEAD)
            cores = [(recorded.cores, plain.cores) for plain, recorded in pairs]
            print_overhead("  CPU seconds", cores, MOST_OVERHEAD)
        runs = [
            (time_example(folder, None), time_example(folder, folder / "example"))
            for _ in range(arguments.example)
        ]
        if runs:
            pairs_of_runs = [(recorded, plain) for plain, recorded in runs]
            print_overhead("the example in Flower's simulation", pairs_of_runs, MOST_OVERHEAD)


if __name__ == "__main__":
    if find_spec("flwr") is None:
        print("skipped: pip install '.[flower]'")
        sys.exit()
    from flwr.app import (
        Array,
        ArrayRecord,
        ConfigRecord,
        Message,
        MetricRecord,
        RecordDict,
    )
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import FedAvg
    from flwr.supercore.task_identity import TaskIdentity

    from overheard.recorders.flower import RecordingGrid

    main()
