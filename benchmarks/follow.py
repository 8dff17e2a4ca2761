"""Follow a recording while it is written: memory, and how many rounds the claims lag behind.

    python benchmarks/follow.py [--clients 200] [--rounds 6] [--seconds 20] [--folder DIR]

One process writes rounds of updates of a million parameters each, with the recorder that the
integrations use, and a differentially private aggregation in the manifest. Another follows it
by `overheard audit --follow`. It claims label shares from the last layer and links senders by
their metadata. After the run it audits all rounds. Updates are noise, as time and memory do not
depend on their values. With 200 clients this writes 0.8 GB a round.
Linux only: peaks are VmHWM of /proc/PID/status, read when a line is printed.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from time import sleep, time

import numpy as np
import torch

from overheard.archive.layout import count_committed_rounds
from overheard.core.messages import Broadcast, MessageBody, Update, Weights
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.datasets.digits import Digits
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.federation.run import record_defense
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo

MOST_MEGABYTES = 500
"""Largest accepted peak of the whole process while it follows, in MB (1e6 bytes)."""

MOST_LAG = 1
"""Most rounds that may have been recorded when the claims of a round are printed."""

KINDS = 8
"""Number of different updates, which clients share."""

HIDDEN = (1000, 930)
"""Hidden widths of the network with 64 inputs and 10 outputs: 1,005,240 parameters."""

PLAN = """
title = "A recording that grows"
[data]
source = {{ kind = "own", reference = "{data}" }}
auxiliary_per_class = 10
[training]
model = {{ kind = "mlp", hidden = {hidden} }}
rounds = {rounds}
rate = 0.1
epochs = 1
batch = 10
[[threats]]
attacks = ["llg"]
by_round = false
[[threats]]
attacks = ["metadata_link"]
pseudonyms = "round"
by_round = false
"""

BASES = {
    "torch alone": "import torch",
    "the command before it reads anything": "import torch; from overheard.plans.registries "
    "import questions; import overheard.auditing.run, overheard.cli.following; questions()",
}
"""What is imported to measure the memory that nothing can save."""

ROUND_LINE = re.compile(r"round (\d+), ([0-9.]+) s after its end")


@dataclass(frozen=True, slots=True)
class PrintedRound:
    """A line on a round: its number, and the newer rounds that were committed by then."""

    number: int
    delay: float
    lag: int
    peak: float


def megabytes(pid: int | str) -> float:
    """Return the peak memory of a running process in MB (1e6 bytes)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"/proc/{pid}/status has no VmHWM")


def base_memory(imports: str) -> float:
    """Return the peak memory of a process that only imports."""
    code = f"{imports}; print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return int(done.stdout) * 1024 / 1e6


def write(folder: Path, clients: int, rounds: int, seconds: float) -> None:
    """Write a run, one round every so many seconds."""
    task = Task((64,), tuple(map(str, range(10))))
    start = initial_weights(partial(Mlp(hidden=HIDDEN).build, task), Seed(0))
    noise = torch.Generator().manual_seed(0)
    updates = [
        {name: torch.randn(one.shape, generator=noise) * 1e-3 for name, one in start.items()}
        for _ in range(KINDS)
    ]
    parties = tuple(map(client, range(clients)))
    defenses = (record_defense(DpFedavg(noise_multiplier=2.0)),)
    scribe = AsyncWriter(folder, RunInfo("benchmark", "mlp", task, defenses=defenses))
    for number in range(rounds):
        due = time() + seconds
        scribe.begin_round((SERVER, *parties))
        scribe.write(SERVER, frozenset(parties), partial(_broadcast, start))
        for index, party in enumerate(parties):
            kind = updates[(index + number) % KINDS]
            body = partial(_update, kind, 10 + index % 50, 1.0 / (1 + index))
            scribe.write(party, frozenset({SERVER}), body, size=4_000_000)
        scribe.commit()
        sleep(max(0.0, due - time()))
    scribe.close()
    assert scribe.stopped is None, scribe.stopped


def _broadcast(start: Weights) -> MessageBody:
    return Broadcast(start)


def _update(delta: Weights, examples: int, loss: float) -> MessageBody:
    return Update(delta, examples, {"loss": loss})


def follow(folder: Path, arguments: argparse.Namespace) -> Iterator[PrintedRound | float]:
    """Yield each printed round, then the peak while following, then that of the whole audit."""
    plan, recording = folder / "plan.toml", folder / "recording"
    data = folder / "auxiliary.npz"
    digits = Digits().load(None).train
    np.savez(data, x=digits.inputs.flatten(1).numpy(), y=digits.labels.numpy())
    plan.write_text(PLAN.format(hidden=list(HIDDEN), rounds=arguments.rounds, data=data))
    command = [
        *(sys.executable, "-m", "overheard", "audit", str(plan), "--follow", "--device", "cpu"),
        *("--follow-window", str(arguments.window), "--workers", "1"),
        *("--transcript", str(recording), "--out", str(folder / "audit")),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            peak = megabytes(child.pid)
            match = ROUND_LINE.match(line)
            if match:
                number = int(match[1])
                lag = count_committed_rounds(recording) - 1 - number
                yield PrintedRound(number, float(match[2]), lag, peak)
            elif line.startswith("the run has ended"):
                yield peak
                break
        child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"the audit failed with exit code {child.returncode}")
    yield used.ru_maxrss * 1024 / 1e6


def main() -> None:
    """Write and follow a run, and compare memory and lag with their bars."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20.0, help="time of a round")
    parser.add_argument("--window", type=int, default=3, help="rounds that attacks look at")
    parser.add_argument("--folder", type=Path, help="where to write; deleted afterwards")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write is not None:
        write(arguments.write, arguments.clients, arguments.rounds, arguments.seconds)
        return
    print(f"load {os.getloadavg()[0]:.1f} before the run", flush=True)
    bases = {name: base_memory(imports) for name, imports in BASES.items()}
    for name, base in bases.items():
        print(f"memory of {name}: {base:.0f} MB", flush=True)
    with TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = Path(temporary)
        writer = subprocess.Popen(
            [
                *(sys.executable, __file__, "--write", str(folder / "recording")),
                *("--clients", str(arguments.clients), "--rounds", str(arguments.rounds)),
                *("--seconds", str(arguments.seconds)),
            ]
        )
        try:
            printed, peaks = list[PrintedRound](), list[float]()
            for one in follow(folder, arguments):
                if isinstance(one, PrintedRound):
                    printed.append(one)
                    print(
                        f"round {one.number}: {one.delay:.1f} s after its end, lag "
                        f"{one.lag} rounds, peak {one.peak:.0f} MB",
                        flush=True,
                    )
                else:
                    peaks.append(one)
        finally:
            writer.terminate()
            writer.wait()
            rmtree(folder / "recording", ignore_errors=True)
    following, whole = peaks
    lag = max((one.lag for one in printed), default=arguments.rounds)
    print(
        f"{arguments.clients} clients, {len(printed)} of {arguments.rounds} rounds printed; "
        f"lag at most {lag} rounds {'reached' if lag <= MOST_LAG else 'MISSED'}; peak while "
        f"following {following:.0f} MB, {following - max(bases.values()):.0f} MB more than its "
        f"imports {'reached' if following <= MOST_MEGABYTES else 'MISSED'}; with the final "
        f"audit of all rounds {whole:.0f} MB"
    )


if __name__ == "__main__":
    main()
