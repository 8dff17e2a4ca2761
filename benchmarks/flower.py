"""A federation of Decaf's network here and in Flower's simulation, on two cores of one machine.

20 clients of 600 examples each, all of them in every round, one epoch of plain SGD in batches
of 32. Either side runs in a fresh process, in turn, and reads the same examples from a file.
Ours writes its transcript to a folder and in the end tests every global model; Flower (two
actors of one thread) does neither, and has its examples in memory, which is in its favour.

    python benchmarks/flower.py [--repeats 5] [--data DIR] [--engine auto]

Linux only: a round takes place on the first two cores this process may use, and what Flower
leaves running is found in /proc. Ends at once where Flower is not installed.
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

# Neither side's process imports the other side: that would count in its cold start.
if TYPE_CHECKING:
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.serverapp import Grid

    from overheard.learning.train import Engine

Side = Literal["ours", "flower"]

CORES, CLIENTS, EXAMPLES, TESTED, ROUNDS = 2, 20, 600, 1000, 5
RATE, BATCH = 0.05, 32

SETTLED = 2
"""Rounds that a run may take to start its processes, and are no part of its steady state."""

STEADY_BAR, COLD_BAR = 2.0, 4.0
"""How many times faster than Flower we are to be."""

PATIENCE = 300.0
"""Seconds after which a side is given up."""

START = "import flower; flower.run_{side}(*{settings})"
"""Imported and not run as a script, so that Flower's actors import their client by its name."""

MARK = "OVERHEARD_BENCHMARK"
"""The environment variable by which we know the processes that a side has left behind."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What one run of one side took.

    Args:
        cold: seconds from the start of its process to the model after the last round.
        steady: median seconds of a round, once the processes run.
        accuracy: share of the test examples that its last model got right.

    """

    cold: float
    steady: float
    accuracy: float


def run_ours(folder: str, engine: "Engine") -> None:
    """Run the federation with this engine, as a user would, and note when each round ended."""
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
    """Run the federation in Flower, written as in its own example for PyTorch."""
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

    def answers(replies: "list[RecordDict]", weighted_by: str) -> "MetricRecord":
        return MetricRecord({"answers": len(replies)})

    client_app, server_app = ClientApp(), ServerApp()
    client_app.train()(train_in_flower)

    @server_app.main()
    def serve(grid: "Grid", context: "Context") -> None:
        strategy = FedAvg(
            fraction_evaluate=0.0, min_available_nodes=CLIENTS, train_metrics_aggr_fn=answers
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
        # Flower goes on without a client that failed, and would be the faster for it.
        told = [said["answers"] for said in learned.train_metrics_clientapp.values()]
        if told != [CLIENTS] * ROUNDS:
            raise RuntimeError(f"{CLIENTS} clients were to answer each round, {told} did")

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
    """What one client does in one round: the plain loop of torch."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

    torch.set_num_threads(1)
    model = plain_decaf()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    config = message.content["config"]
    stored = examples(config["folder"])
    held = slice(*(EXAMPLES * (context.node_config["partition-id"] + end) for end in (0, 1)))
    inputs, labels = stored["inputs"][held], stored["labels"][held]
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
    """Decaf's network as one writes it: convolution, ReLU, pool."""
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
    """The examples that `write_examples` wrote; read once a process."""
    with np.load(Path(folder) / "examples.npz", allow_pickle=False) as stored:
        return {name: torch.from_numpy(stored[name]) for name in stored.files}


def note(folder: str, ends: Sequence[float], done: float, accuracy: float) -> None:
    """Leave for the parent when the rounds ended; its clock is ours (Linux)."""
    told = json.dumps({"ends": ends, "done": done, "accuracy": accuracy})
    (Path(folder) / "timing.json").write_text(told)


def write_examples(folder: Path, data: Path | None) -> str:
    """Write what all clients hold, and a test set; tells what they are."""
    from overheard.core.examples import Examples
    from overheard.core.seeds import Seed
    from overheard.data.datasets.mnist import Mnist
    from overheard.data.reading.folder import data_folder, find_file

    generator, count = Seed(0).child("examples").generator(), CLIENTS * EXAMPLES
    home = data_folder(data)
    if find_file(home, ("mnist/mnist.npz",)) is not None:
        mnist = Mnist().load(home)
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
    """Run one side in a fresh process, and leave nothing of it running or on the disk."""
    mark = token_hex(16)
    # Short, since Ray names its sockets by it.
    with TemporaryDirectory(prefix="f", dir="/tmp") as temporary:
        folder = Path(temporary)
        (folder / "examples.npz").symlink_to(stored / "examples.npz")
        environment = os.environ | {
            MARK: mark,
            "PYTHONPATH": str(Path(__file__).parent),
            "FLWR_HOME": temporary,
            "FLWR_TELEMETRY_ENABLED": "0",
            "RAY_TMPDIR": temporary,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        command = START.format(side=side, settings=(temporary, *settings))
        with (folder / "said").open("w+") as said:
            began = perf_counter()
            try:
                ended = subprocess.run(
                    [sys.executable, "-c", command],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    timeout=PATIENCE,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                ended = None
            finally:
                kill_all(mark)
            if ended != 0:
                said.seek(0)
                sys.exit(f"{said.read()}\n{side} failed (exit code {ended})")
        told = json.loads((folder / "timing.json").read_text())
    rounds = [end - start for start, end in pairwise(told["ends"])]
    steady = statistics.median(rounds[SETTLED:])
    return Timing(told["done"] - began, steady, told["accuracy"])


def kill_all(mark: str) -> None:
    """End every process that inherited this mark, such as Ray's daemons after a failure."""
    while left := marked(mark):
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        sleep(0.1)


def marked(mark: str) -> list[int]:
    """The processes that inherited this mark and have not ended."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # Gone by now, or another user's.
        with suppress(FileNotFoundError, PermissionError, ProcessLookupError):
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def print_row(what: str, pairs: Sequence[tuple[float, float]], bar: float) -> None:
    """Show the median ratio of pairs of seconds (ours, Flower's), their range and the bar."""
    ratios = [theirs / ours for ours, theirs in pairs]
    middle = statistics.median(ratios)
    ours, theirs = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
    print(
        f"{what:<46} {ours:5.2f} s {theirs:6.2f} s {middle:6.2f}x  {min(ratios):6.2f} - "
        f"{max(ratios):6.2f}   >= {bar:.1f}x  {'reached' if middle >= bar else 'MISSED'}",
        flush=True,
    )


def main() -> None:
    """Run both sides in turn, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", type=Path, help="left out: what OVERHEARD_DATA says")
    parser.add_argument("--engine", default="auto", help="how we train")
    chosen = parser.parse_args()
    if find_spec("flwr") is None or find_spec("ray") is None:
        print("skipped: pip install '.[flower]'")
        return
    # Killed politely, by `timeout` say, we stop what we have started as after any failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    allowed = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, allowed)
    with TemporaryDirectory() as temporary:
        stored = Path(temporary)
        what = write_examples(stored, chosen.data)
        print(
            f"{what}, torch {torch.__version__}, {len(allowed)} cores, {chosen.repeats} pairs, "
            f"engine {chosen.engine}, load {os.getloadavg()[0]:.1f} before the first pair; "
            "medians of ours, Flower's and their ratio",
            flush=True,
        )
        pairs = []
        for _ in range(chosen.repeats):
            ours, theirs = timed("ours", stored, chosen.engine), timed("flower", stored)
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
        f"right on {TESTED} test images after {ROUNDS} rounds: ours {ours.accuracy:.3f}, "
        f"Flower {theirs.accuracy:.3f}"
    )


if __name__ == "__main__":
    main()
