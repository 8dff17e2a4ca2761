"""Measure how much hostile replies slow a recorded Flower run, and that they hide no other one.

    python benchmarks/hostile_replies.py [--pairs 5] [--rounds 3] [--kind NAME] [--folder DIR]

Clients train a model of a million parameters in this process. One of 11, or 10 of 20, then send
hostile replies in place of honest ones: of each kind of `tests/hostile/flower_replies.py` in
turn, or of one kind alone. The server averages the honest replies. The recorded run is compared
with the same run without a recording, and with a recorded run of honest clients alone. The
seconds in which hostile replies are made are not counted. Then the seconds of the server's
thread are measured for one reply of each kind. Exits with 1 if a reply of an honest client is
not recorded. Exits immediately if Flower is not installed.
"""

import argparse
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, thread_time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from _pairs import print_overhead

PARAMETERS = 1_000_000
"""Numbers in the model, roughly."""

EXAMPLES, BATCH, EPOCHS = 600, 32, 5
"""How each client trains in a round."""

HONEST, HOSTILE = 10, (1, 10)
"""Number of honest clients, and numbers of hostile ones beside them."""

SCALE, LARGE_SCALE = 100_000, 1_000_000
"""Most entries, characters and digits of a hostile reply in a run, and of one alone."""

MOST_OVERHEAD = 1.05
"""Largest accepted duration of a recorded run, relative to another run."""

MOST_SECONDS = 0.005
"""Most accepted seconds of the server's thread for one reply."""

SLOWEST = 10
"""Kinds whose seconds are printed."""


@dataclass(frozen=True, slots=True)
class Duration:
    """Wall-clock and CPU seconds of a run."""

    wall: float
    cores: float


def train(model: nn.Module, arrays: "Mapping[str, Array]", number: int) -> "ArrayRecord":
    """Return the weights of a client that trains from these on data of its own."""
    model.load_state_dict({name: torch.tensor(one.numpy()) for name, one in arrays.items()})
    random = torch.Generator().manual_seed(number)
    inputs = torch.randn(EXAMPLES, 784, generator=random)
    labels = torch.randint(0, 10, (EXAMPLES,), generator=random)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for rows in torch.arange(EXAMPLES).repeat(EPOCHS).split(BATCH):
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
    return ArrayRecord(model.state_dict())


def make_clients(count: int, hostile: "Iterator[HostileReply] | None") -> "Grid":
    """Return a grid of so many clients, of which those after the honest ones are hostile.

    Args:
        count: number of clients.
        hostile: what hostile clients send, one after the other; None = all are honest.

    """

    class Clients(HostileNodes):
        """The clients; `making` is the time in which hostile replies were made."""

        def __init__(self) -> None:
            super().__init__({}, [])
            self.model = nn.Sequential(
                nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 210), nn.ReLU(),
                nn.Linear(210, 10),
            )  # fmt: skip
            self.making = Duration(0, 0)

        @property
        def nodes(self) -> tuple[int, ...]:
            """The numbers from 1 on."""
            return tuple(range(1, count + 1))

        def send_and_receive(
            self, messages: "Sequence[Message]", *, timeout: float | None = None
        ) -> "Sequence[Message]":
            """Let all clients train and reply; hostile replies come first."""
            replies = []
            for message in messages:
                message.metadata.__dict__["_message_id"] = str(next(self.numbers))
                node, arrays = message.metadata.dst_node_id, message.content["arrays"]
                trained = train(self.model, arrays, node)
                if hostile is None or node <= HONEST:
                    metrics = MetricRecord({"num-examples": EXAMPLES})
                    content = RecordDict({"arrays": trained, "metrics": metrics})
                    replies.append(Message(content, reply_to=message))
                else:
                    replies = [*self.make(next(hostile), message), *replies]
            return replies

        def make(self, kind: HostileReply, message: "Message") -> "Sequence[Message]":
            """Return hostile replies, and measure how long it takes to make them."""
            began, busy = perf_counter(), thread_time()
            sent = {name: one.numpy() for name, one in message.content["arrays"].items()}
            replies = kind.make(message, sent)
            wall, cores = perf_counter() - began, thread_time() - busy
            self.making = Duration(self.making.wall + wall, self.making.cores + cores)
            return replies

    return Clients()


def time_run(
    folder: Path | None, count: int, rounds: int, hostile: "Iterator[HostileReply] | None"
) -> Duration:
    """Time a run of so many clients, recorded if there is a folder."""
    torch.manual_seed(0)
    with as_server():
        clients = make_clients(count, hostile)
        model = {name: one.numpy() for name, one in clients.model.state_dict().items()}
        began, busy = perf_counter(), process_time()
        grid = clients if folder is None else RecordingGrid(clients, folder)
        for number in range(rounds):
            replies = grid.send_and_receive(ask(clients.nodes, model, number))
            model = average(replies[-HONEST:])
            # Freed before the next round, as a server does.
            del replies
        if folder is not None:
            grid.finish()
        wall, cores = perf_counter() - began, process_time() - busy
    if folder is not None:
        check_honest_updates(folder, rounds)
        rmtree(folder)
    return Duration(wall - clients.making.wall, cores - clients.making.cores)


def average(replies: "Iterable[Message]") -> Mapping[str, np.ndarray]:
    """Return the mean of the weights in replies."""
    contents = [
        {name: array.numpy() for name, array in one.content["arrays"].items()}
        for one in replies
    ]
    return {name: sum(one[name] for one in contents) / len(contents) for name in contents[0]}


def check_honest_updates(folder: Path, rounds: int) -> None:
    """Exit if an update of an honest client in any round is not recorded."""
    found = {
        (one.round, one.sender)
        for one in open_transcript(folder).messages
        if isinstance(one.body, Update)
    }
    parties = map(client, range(1, HONEST + 1))
    if lost := {(number, party) for party in parties for number in range(rounds)} - found:
        sys.exit(f"not recorded: {sorted(lost)[:10]}")


def compare_runs(
    folder: Path, kinds: "Sequence[HostileReply]", count: int, pairs: int, rounds: int
) -> None:
    """Compare runs with so many hostile clients with those that it must not be slower than."""
    clients = HONEST + count
    # One for each side, so that both are sent the same.
    sent, sent_again = cycle(kinds), cycle(kinds)
    measured = []
    for _ in range(pairs):
        plain = time_run(None, clients, rounds, sent)
        recorded = time_run(folder, clients, rounds, sent_again)
        measured.append((recorded, plain, time_run(folder, clients, rounds, None)))
    for place, other in enumerate(("not recorded", "all honest"), 1):
        what = f"{count} hostile of {clients}, recorded / {other}"
        walls = [(one[0].wall, one[place].wall) for one in measured]
        print_overhead(what, walls, MOST_OVERHEAD)
        cores = [(one[0].cores, one[place].cores) for one in measured]
        print_overhead("  CPU seconds", cores, MOST_OVERHEAD)


def main() -> None:
    """Measure the runs and the single replies, and compare them with their bars."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", help="the only kind of hostile reply")
    parser.add_argument("--folder", type=Path, help="folder on the disk to measure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    # Each recording says where it is, and what of the replies it does not store.
    logging.disable(logging.WARNING)
    # A first run takes longer than later ones.
    time_run(None, 1, 1, None)
    print(f"load {os.getloadavg()[0]:.1f} before the first run", flush=True)
    kinds, large = flower_replies(SCALE), flower_replies(LARGE_SCALE)
    if arguments.kind is not None:
        kinds, large = ({arguments.kind: one[arguments.kind]} for one in (kinds, large))
    with TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = Path(temporary)
        for count in HOSTILE if arguments.pairs else ():
            compare_runs(
                folder / "run", list(kinds.values()), count, arguments.pairs, arguments.rounds
            )
        if arguments.pairs:
            print("every honest reply of every round is recorded", flush=True)
        seconds = {
            name: seconds_of_server(folder / f"alone-{place}", one, size=PARAMETERS)
            for place, (name, one) in enumerate(large.items())
        }
    slowest = sorted(seconds, key=lambda name: -seconds[name])[:SLOWEST]
    is_reached = seconds[slowest[0]] <= MOST_SECONDS
    print(
        f"the server's thread, for one reply of each of {len(seconds)} kinds   "
        f"<= {1000 * MOST_SECONDS:g} ms  {'reached' if is_reached else 'MISSED'}"
    )
    for name in slowest:
        print(f"  {name:<56} {1000 * seconds[name]:7.2f} ms")


if __name__ == "__main__":
    if find_spec("flwr") is None:
        print("skipped: pip install '.[flower]'")
        sys.exit()
    # The kinds of hostile replies are those of the tests.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp import Grid

    from overheard.archive.reader import open_transcript
    from overheard.core.messages import Update
    from overheard.core.parties import client
    from overheard.recorders.flower import RecordingGrid
    from tests.hostile.flower_replies import (
        HostileNodes,
        HostileReply,
        as_server,
        ask,
        flower_replies,
        seconds_of_server,
    )

    main()
