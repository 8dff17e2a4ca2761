"""Measure what comparing a large recording with its digests adds to audits of it.

    python benchmarks/digests.py [--clients 10] [--rounds 100] [--pairs 5] [--folder DIR]

Writes a recording of that many updates of a million float32 parameters (4.4 GB), with random
changes. Then audits it anew and once more from the stored cells, with and without
`--trust-store`, in turn.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from time import perf_counter

import torch

from overheard.archive.manifest import Manifest
from overheard.archive.recorder import Recorder
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.task import Task

HIDDEN = 14_600
"""Hidden units that give the network a million parameters."""

PLAN = f"""
title = "Digests"

[data]
source = "digits"
split = {{ kind = "dirichlet", alpha = 0.5 }}
clients = CLIENTS
examples = [80, 120]
auxiliary_per_class = 20

[training]
model = {{ kind = "mlp", hidden = [{HIDDEN}] }}
rounds = ROUNDS
rate = 0.1

[[threats]]
observers = ["server"]
attacks = ["decaf", "mean_softmax", "bias_inversion"]
"""


def write(folder: Path, clients: int, rounds: int) -> None:
    """Write the recording."""
    generator = torch.Generator().manual_seed(0)
    parties = tuple(client(number) for number in range(clients))
    names = tuple("0123456789")
    manifest = Manifest(
        Task((1, 8, 8), names), "benchmark", None, (), (SERVER, *parties), rounds
    )
    recorder = Recorder(folder, manifest)
    shapes = {
        "1.weight": (HIDDEN, 64),
        "1.bias": (HIDDEN,),
        "3.weight": (len(names), HIDDEN),
        "3.bias": (len(names),),
    }
    for number in range(rounds):
        with recorder.open_round() as channel:
            start = {name: torch.zeros(shape) for name, shape in shapes.items()}
            channel.record(Message(number, SERVER, frozenset(parties), Broadcast(start)))
            for party in parties:
                delta = {
                    name: torch.randn(shape, generator=generator) * 1e-3
                    for name, shape in shapes.items()
                }
                update = Update(delta, 100, {"loss": 1.0})
                channel.record(Message(number, party, frozenset({SERVER}), update))


def seconds(plan: Path, recording: Path, out: Path, *options: str) -> float:
    """Return the seconds of an audit in a new process."""
    begin = perf_counter()
    command = [sys.executable, "-m", "overheard", "audit", str(plan), "--quiet"]
    command += ["--transcript", str(recording), "--out", str(out), "--workers", "1", *options]
    subprocess.run(command, check=True)
    return perf_counter() - begin


def main() -> None:
    """Write the recording, then measure pairs of audits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="folder for the recording; default: /tmp")
    options = parser.parse_args()
    with TemporaryDirectory(dir=options.folder) as temporary:
        home = Path(temporary)
        recording, plan = home / "recording", home / "plan.toml"
        write(recording, options.clients, options.rounds)
        text = PLAN.replace("CLIENTS", str(options.clients))
        plan.write_text(text.replace("ROUNDS", str(options.rounds)))
        size = sum(path.stat().st_size for path in recording.rglob("*.safetensors")) / 1e9
        print(f"{size:.2f} GB")
        times: dict[str, list[float]] = {}
        for pair in range(options.pairs):
            order = [("compared",), ("trusted", "--trust-store")]
            for name, *trust in order if pair % 2 else order[::-1]:
                out = home / name
                for kind in ("fresh", "resumed"):
                    times.setdefault(f"{kind}, {name}", []).append(
                        seconds(plan, recording, out, *trust)
                    )
                rmtree(out)
        for kind in ("fresh", "resumed"):
            compared, trusted = times[f"{kind}, compared"], times[f"{kind}, trusted"]
            added = [one - other for one, other in zip(compared, trusted, strict=True)]
            print(
                f"{kind:8} {statistics.median(trusted):6.1f} s trusted, "
                f"{statistics.median(compared):6.1f} s compared: "
                f"{statistics.median(added):+.1f} s [{min(added):+.1f}, {max(added):+.1f}]"
            )


if __name__ == "__main__":
    main()
