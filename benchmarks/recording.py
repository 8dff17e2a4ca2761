"""What it costs a Flower run to be recorded, and how fast a recording is written.

    python benchmarks/recording.py [--clients 1000] [--rounds 3] [--pairs 5] [--folder DIR]

Writing: in each round so many clients answer with a model of a million float32 parameters each,
at once, and the run is over when all is on the disk; beside it, the same number of bytes in as
many files, each written and flushed. Either takes 4 GB a round for 1,000 clients, one after the
other. Overhead: a
federation of ten clients that train such a model in this process, with and without a recording,
in turn; and the app of examples/flower in Flower's simulation, by what Flower says that its
strategy took. Ends at once where Flower is not installed.
"""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, sleep

import numpy as np
import torch
from torch import nn
from torch.nn import functional

PARAMETERS, KINDS = 1_000_000, 16
"""Numbers in a model, and how many different answers there are: they need not all differ."""

LEAST_SPEED = 200.0
"""MB/s (1e6 bytes) that a recording is to be written at, or as fast as the disk."""

MOST_OVERHEAD = 1.05
"""How many times as long a recorded run may take."""

TRAINERS, EXAMPLES, BATCH, EPOCHS = 10, 600, 32, 5
TRAINED_ROUNDS = 3

EXAMPLE = Path(__file__).parents[1] / "examples" / "flower"
FINISHED = re.compile(r"Strategy execution finished in ([0-9.]+)s")
PATIENCE = 600.0


def grid_of(answer: "Callable[[Message], Message]", nodes: int) -> "Grid":
    """A grid of so many nodes in this process."""

    class Nodes(Grid):
        """Answers in turn."""

        def set_run(self, run: object) -> None:
            """Work in no run."""

        @property
        def run(self) -> object:
            """No run."""
            return None

        def create_message(self, *settings: object) -> "Message":
            """Make none."""
            raise NotImplementedError

        def get_node_ids(self) -> "Iterable[int]":
            """From 1 on."""
            return range(1, nodes + 1)

        def push_messages(self, messages: "Iterable[Message]") -> "Iterable[str]":
            """Take none."""
            raise NotImplementedError

        def pull_messages(self, message_ids: "Iterable[str]") -> "Iterable[Message]":
            """Give none."""
            raise NotImplementedError

        def send_and_receive(
            self, messages: "Iterable[Message]", *, timeout: float | None = None
        ) -> "Iterable[Message]":
            """Answer all."""
            return [answer(message) for message in messages]

    return Nodes()


def recorded(folder: Path, clients: int, rounds: int) -> float:
    """MB/s at which rounds of so many answers are recorded, until all is on the disk."""
    draw = np.random.default_rng(0)
    start, *answers = (
        ArrayRecord({"weight": Array(draw.standard_normal((1000, 1000), dtype=np.float32))})
        for _ in range(1 + KINDS)
    )
    metrics = MetricRecord({"num-examples": 5, "loss": 0.5})

    def answer(message: "Message") -> "Message":
        arrays = answers[message.metadata.dst_node_id % KINDS]
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    began = perf_counter()
    grid = RecordingGrid(grid_of(answer, clients), folder)
    for number in range(1, rounds + 1):
        told = ConfigRecord({"server-round": number})
        content = RecordDict({"arrays": start, "config": told})
        grid.send_and_receive(Message(content, node, "train") for node in range(1, clients + 1))
    grid.finish()
    took = perf_counter() - began
    if grid.stopped is not None:
        sys.exit(f"the recording ended: {grid.stopped}")
    written = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    rmtree(folder)
    return written / took / 1e6


def bare(folder: Path, files: int) -> float:
    """MB/s at which so many files of that size are written, each flushed before the next."""
    draw = np.random.default_rng(0)
    contents = [draw.bytes(4 * PARAMETERS) for _ in range(KINDS)]
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
class Took:
    """Seconds that a run took, and that cores were busy with it."""

    wall: float
    cores: float


def trained(folder: Path | None) -> Took:
    """What a federation takes that trains in this process; recorded, if to a folder."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 210), nn.ReLU(), nn.Linear(210, 10)
    )
    inputs, labels = torch.randn(EXAMPLES, 784), torch.randint(0, 10, (EXAMPLES,))
    initial = ArrayRecord(model.state_dict())

    def answer(message: "Message") -> "Message":
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

    beneath = grid_of(answer, TRAINERS)
    began, busy = perf_counter(), process_time()
    grid = beneath if folder is None else RecordingGrid(beneath, folder)
    strategy = FedAvg(fraction_evaluate=0.0)
    strategy.start(grid=grid, initial_arrays=initial, num_rounds=TRAINED_ROUNDS)
    if folder is not None:
        grid.finish()
    took = Took(perf_counter() - began, process_time() - busy)
    if folder is not None:
        rmtree(folder)
    return took


def example(home: Path, recording: Path | None) -> float:
    """Seconds that the example's strategy takes in Flower's simulation of ten clients."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = home / "flwr"
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
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        while True:
            with socket.socket() as door:
                if not door.connect_ex(("127.0.0.1", port)):
                    break
            sleep(0.2)
        said = subprocess.run(
            [
                programs / "flwr", "run", EXAMPLE, "--stream",
                "--federation-config", "num-supernodes=10",
                "--run-config", f"recording='{recording or ''}'",
            ],
            env=environment, cwd=home, capture_output=True, text=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
    finally:
        with suppress(ProcessLookupError):
            os.killpg(link.pid, signal.SIGKILL)
        link.wait()
    found = FINISHED.search(said.stdout + said.stderr)
    if found is None:
        sys.exit(f"the example failed:\n{(said.stdout + said.stderr)[-4000:]}")
    if recording is not None:
        rmtree(recording)
    return float(found[1])


def print_overhead(what: str, pairs: Sequence[tuple[float, float]]) -> None:
    """Show the median ratio of pairs of seconds (plain, recorded), and their range."""
    ratios = [with_it / without for without, with_it in pairs]
    middle = median(ratios)
    plain = median(one for one, _ in pairs)
    print(
        f"{what:<52} {plain:6.2f} s plain, recorded {middle:.3f}x "
        f"({min(ratios):.3f} - {max(ratios):.3f})   <= {MOST_OVERHEAD:.2f}x  "
        f"{'reached' if middle <= MOST_OVERHEAD else 'MISSED'}",
        flush=True,
    )


def main() -> None:
    """Measure, and print what was reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument(
        "--rounds", type=int, default=3, help="to write, then as many bare files"
    )
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--example", type=int, default=3, help="pairs of the example's runs")
    parser.add_argument("--folder", type=Path, help="on the disk in question")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    print(f"load {os.getloadavg()[0]:.1f} before the first", flush=True)
    with TemporaryDirectory(dir=chosen.folder) as temporary:
        home = Path(temporary)
        if chosen.rounds:
            speed = recorded(home / "run", chosen.clients, chosen.rounds)
            disk = bare(home / "bare", chosen.clients * chosen.rounds)
            is_reached = speed >= min(LEAST_SPEED, disk)
            print(
                f"{chosen.clients} clients of {PARAMETERS:,} parameters, "
                f"{chosen.rounds} rounds: recorded at {speed:.0f} MB/s, bare files at "
                f"{disk:.0f} MB/s   >= {LEAST_SPEED:.0f} MB/s or the disk's  "
                f"{'reached' if is_reached else 'MISSED'}",
                flush=True,
            )
        pairs = [(trained(None), trained(home / "run")) for _ in range(chosen.pairs)]
        if pairs:
            what = f"{TRAINED_ROUNDS} rounds of {TRAINERS} clients in one process"
            print_overhead(what, [(one.wall, other.wall) for one, other in pairs])
            cores = [(one.cores, other.cores) for one, other in pairs]
            print_overhead("  seconds that cores were busy", cores)
        runs = [
            (example(home, None), example(home, home / "example"))
            for _ in range(chosen.example)
        ]
        if runs:
            print_overhead("the example in Flower's simulation", runs)


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
