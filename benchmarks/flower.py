"""Time a federation of Decaf's network in overheard and in Flower's simulation, on two cores.

20 clients of 600 examples each, all of them in every round, one epoch of plain SGD in batches
of 32. Each side runs in a new process, in turn, and reads the same examples from a file.
Overheard writes its transcript to a folder and finally tests every global model. Flower (two
actors of one thread) does neither and has its examples in memory, which favours Flower.

    python benchmarks/flower.py [--repeats 5] [--data DIR] [--engine auto]

Linux only: rounds run on the first two cores available to this process, and processes that
Flower leaves running are found in /proc. Exits immediately if Flower is not installed.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from _pairs import print_row

# Neither side's process imports the other side, which would lengthen its cold start.
if TYPE_CHECKING:
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.serverapp import Grid

    from overheard.learning.train import Engine

Side = Literal["ours", "flower"]

CORES, CLIENTS, EXAMPLES, TESTED, ROUNDS = 2, 20, 600, 1000, 5
RATE, BATCH = 0.05, 32

SETTLED = 2
"""First rounds, in which processes start; they do not count as steady state."""

STEADY_BAR, COLD_BAR = 2.0, 4.0
"""Required speed relative to Flower's."""

PATIENCE = 300.0
"""Seconds after which a run is stopped as failed."""

START = "import flower; flower.run_{side}(*{settings})"
"""Imported and not run as a script, so that Flower's actors can import their client by name."""

MARK = "OVERHEARD_BENCHMARK"
"""Environment variable that marks the processes of a run."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Times and accuracy of one run of one side.

    Args:
        cold: seconds from the start of its process to the model after the last round.
        steady: median seconds of a round after the processes have started.
        accuracy: accuracy of the last model on the test examples.

    """

    cold: float
    steady: float
    accuracy: float


def run_ours(folder: str, engine: "Engine") -> None:
    """Run the federation with this engine as a user would, and record when each round ended."""
    from overheard.core.examples import Examples
    from overheard.core.recipe import Recipe
    from overheard.core.seeds import Seed
    from overheard.core.task import Task
    from overheard.federation.run import Federation, run
    from overheard.learning.models.decaf_conv2 import DecafConv2

    model, task = DecafConv2(), Task((1, 28, 28), tuple("0123456789"))
    stored = examples(folder)
    rows = list(torch.arange(CLIENTS * EXAMPLES).split(EXAMPLES))
    federation = Federation(
        build_model=partial(model.build, task),
        model=repr(model),
        task=task,
        recipe=Recipe(rate=RATE, epochs=1, batch=BATCH),
        pool=Examples(stored["inputs"], stored["labels"]),
        rows=[rows] * ROUNDS,
        test=Examples(stored["test_inputs"], stored["test_labels"]),
        rounds=ROUNDS,
        seed=Seed(0),
        engine=engine,
    )
    ends = [perf_counter()]
    _, truth = run(federation, Path(folder) / "run", lambda _: ends.append(perf_counter()))
    note(folder, ends, perf_counter(), truth.accuracy[ROUNDS])


def run_flower(folder: str) -> None:
    """Run the federation in Flower, as in its own PyTorch example."""
    from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    ends: list[float] = []
    done: list[float] = []
    last: list[ArrayRecord] = []

    def round_ended(number: int, arrays: "ArrayRecord") -> None:
        ends.append(perf_counter())

    def count_replies(replies: "list[RecordDict]", weighted_by: str) -> "MetricRecord":
        return MetricRecord({"replies": len(replies)})

    client_app, server_app = ClientApp(), ServerApp()
    client_app.train()(train_in_flower)

    @server_app.main()
    def serve(grid: "Grid", context: "Context") -> None:
        strategy = FedAvg(
            fraction_evaluate=0.0,
            min_available_nodes=CLIENTS,
            train_metrics_aggr_fn=count_replies,
        )
        learned = strategy.start(
            grid=grid,
            initial_arrays=ArrayRecord(plain_decaf().state_dict()),
            train_config=ConfigRecord({"rate": RATE, "folder": folder}),
            num_rounds=ROUNDS,
            evaluate_fn=round_ended,
        )
        done.append(perf_counter())
        last.append(learned.arrays)
        # Flower continues without failed clients, which would make it faster.
        replies = [metrics["replies"] for metrics in learned.train_metrics_clientapp.values()]
        if replies != [CLIENTS] * ROUNDS:
            raise RuntimeError(f"{replies} clients replied in each round, expected {CLIENTS}")

    run_simulation(
        server_app=server_app,
        client_app=client_app,
        num_supernodes=CLIENTS,
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {"num_cpus": CORES},
        },
    )
    model, stored = plain_decaf(), examples(folder)
    model.load_state_dict(last[0].to_torch_state_dict())
    with torch.inference_mode():
        right = model(stored["test_inputs"]).argmax(1) == stored["test_labels"]
    note(folder, ends, done[0], float(right.double().mean()))


def train_in_flower(message: "Message", context: "Context") -> "Message":
    """Train one client in one round with a plain torch loop."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

    torch.set_num_threads(1)
    model = plain_decaf()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    config = message.content["config"]
    stored = examples(config["folder"])
    rows = slice(*(EXAMPLES * (context.node_config["partition-id"] + end) for end in (0, 1)))
    inputs, labels = stored["inputs"][rows], stored["labels"][rows]
    optimizer = torch.optim.SGD(model.parameters(), lr=config["rate"])
    model.train()
    total = 0.0
    for batch in torch.randperm(EXAMPLES).split(BATCH):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    metrics = MetricRecord({"train_loss": total / EXAMPLES, "num-examples": EXAMPLES})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)


def plain_decaf() -> nn.Module:
    """Return Decaf's network in plain torch: convolution, ReLU, pool."""
    return nn.Sequential(
        nn.Conv2d(1, 10, 3),
        nn.ReLU(),
        nn.Conv2d(10, 20, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2880, 50),
        nn.ReLU(),
        nn.Linear(50, 10),
    )


@cache
def examples(folder: str) -> dict[str, Tensor]:
    """Return the examples that `write_examples` wrote, read once per process."""
    with np.load(Path(folder) / "examples.npz", allow_pickle=False) as stored:
        return {name: torch.from_numpy(stored[name]) for name in stored.files}


def note(folder: str, ends: Sequence[float], done: float, accuracy: float) -> None:
    """Write when the rounds ended; parent and child share a clock (Linux)."""
    text = json.dumps({"ends": ends, "done": done, "accuracy": accuracy})
    (Path(folder) / "timing.json").write_text(text)


def write_examples(folder: Path, data: Path | None) -> str:
    """Write the clients' examples and a test set; return a description."""
    from overheard.core.examples import Examples
    from overheard.core.seeds import Seed
    from overheard.data.datasets.mnist import Mnist
    from overheard.data.reading.folder import data_folder, find_file

    generator, count = Seed(0).child("examples").generator(), CLIENTS * EXAMPLES
    data_home = data_folder(data)
    if find_file(data_home, ("mnist/mnist.npz",)) is not None:
        mnist = Mnist().load(data_home)
        order = torch.randperm(len(mnist.train), generator=generator)
        train, test, what = mnist.train.take(order[:count]), mnist.test, "MNIST"
    else:
        train, test = (
            Examples(
                torch.randn(size, 1, 28, 28, generator=generator),
                torch.randint(0, 10, (size,), generator=generator),
            )
            for size in (count, TESTED)
        )
        what = "random images (no MNIST in the data folder)"
    np.savez(
        folder / "examples.npz",
        inputs=train.inputs.numpy(),
        labels=train.labels.numpy(),
        test_inputs=test.inputs[:TESTED].numpy(),
        test_labels=test.labels[:TESTED].numpy(),
    )
    return what


def timed(side: Side, stored: Path, *settings: str) -> Timing:
    """Run one side in a new process, then stop its processes and delete its files."""
    mark = token_hex(16)
    # Short, as the names of Ray's sockets contain it.
    with TemporaryDirectory(prefix="f", dir="/tmp") as temporary:
        folder = Path(temporary)
        (folder / "examples.npz").symlink_to(stored / "examples.npz")
        environment = os.environ | {
            MARK: mark,
            "PYTHONPATH": os.pathsep.join(
                (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
            ),
            "FLWR_HOME": temporary,
            "FLWR_TELEMETRY_ENABLED": "0",
            "RAY_TMPDIR": temporary,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        command = START.format(side=side, settings=(temporary, *settings))
        with (folder / "output").open("w+") as output:
            began = perf_counter()
            try:
                ended = subprocess.run(
                    [sys.executable, "-c", command],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=PATIENCE,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                ended = None
            finally:
                kill_all(mark)
            if ended != 0:
                output.seek(0)
                sys.exit(f"{output.read()}\n{side} failed (exit code {ended})")
        timing = json.loads((folder / "timing.json").read_text())
    rounds = [end - start for start, end in pairwise(timing["ends"])]
    steady = statistics.median(rounds[SETTLED:])
    return Timing(timing["done"] - began, steady, timing["accuracy"])


def kill_all(mark: str) -> None:
    """Kill every process that inherited this mark, such as Ray's daemons after a failure."""
    while remaining := marked(mark):
        for process in remaining:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        sleep(0.1)


def marked(mark: str) -> list[int]:
    """Return the running processes that inherited this mark."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # The process may have ended, or belong to another user.
        with suppress(FileNotFoundError, PermissionError, ProcessLookupError):
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def main() -> None:
    """Run both sides in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", type=Path, help="default: OVERHEARD_DATA")
    parser.add_argument("--engine", default="auto", help="training engine")
    arguments = parser.parse_args()
    if find_spec("flwr") is None or find_spec("ray") is None:
        print("skipped: Flower's simulation is not installed: pip install '.[flower,ray]'")
        return
    # On SIGTERM, such as from `timeout`, stop all started processes as after a failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    allowed = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, allowed)
    with TemporaryDirectory() as temporary:
        stored = Path(temporary)
        what = write_examples(stored, arguments.data)
        print(
            f"{what}, torch {torch.__version__}, {len(allowed)} cores, "
            f"{arguments.repeats} pairs, engine {arguments.engine}, load "
            f"{os.getloadavg()[0]:.1f} before the first pair; "
            "medians of overheard's and Flower's times, and their ratio",
            flush=True,
        )
        pairs = []
        for _ in range(arguments.repeats):
            ours, theirs = timed("ours", stored, arguments.engine), timed("flower", stored)
            print(
                f"  a round {ours.steady:.2f} s, {theirs.steady:.2f} s; "
                f"cold {ours.cold:.1f} s, {theirs.cold:.1f} s",
                flush=True,
            )
            pairs.append((ours, theirs))
    cold = [(ours.cold, theirs.cold) for ours, theirs in pairs]
    steady = [(ours.steady, theirs.steady) for ours, theirs in pairs]
    print_row(f"a round of {CLIENTS} clients, steady state", steady, STEADY_BAR)
    print_row(f"{ROUNDS} rounds from a cold start", cold, COLD_BAR)
    print(
        f"accuracy on {TESTED} test images after {ROUNDS} rounds: overheard "
        f"{ours.accuracy:.3f}, Flower {theirs.accuracy:.3f}"
    )


if __name__ == "__main__":
    main()
