"""Stream a transcript larger than the memory limit, and compare peak memory with the bar.

    python benchmarks/streaming.py [--updates 1000] [--parameters 1000000] [--folder DIR]

Writes one round of that many float32 updates, then reads them in new processes: tensor by
tensor, as an attack does, and as the mean of all updates, as FedAvg does.
Linux only: peaks are VmHWM of /proc/self/status.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import torch

from overheard.archive.manifest import Manifest
from overheard.archive.reader import open_transcript, verify_transcript
from overheard.archive.recorder import Recorder
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.task import Task

BAR = 300
"""Largest accepted MB above the idle process, see docs/performance.md."""


def memory(field: str) -> float:
    """Return megabytes (1e6 bytes) of this process: current VmRSS or peak VmHWM."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"/proc/self/status has no {field}")


def reset_peak() -> None:
    """Reset VmHWM to the current memory."""
    Path("/proc/self/clear_refs").write_text("5")


def write(folder: Path, updates: int, parameters: int) -> None:
    """Write one round, drawing updates one by one."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.empty(parameters - 1000, dtype=torch.float32)
    parties = tuple(client(number) for number in range(updates))
    manifest = Manifest(
        Task((1,), ("no", "yes")), "benchmark", None, (), (SERVER, *parties), rounds=0
    )
    with Recorder(folder, manifest).open_round() as channel:
        start = {"hidden": torch.zeros_like(hidden), "head": torch.zeros(1000)}
        channel.record(Message(0, SERVER, frozenset(parties), Broadcast(start)))
        for party in parties:
            delta = {
                "hidden": hidden.normal_(generator=generator),
                "head": torch.randn(1000, generator=generator),
            }
            update = Update(delta, 100, {"loss": 1.0})
            channel.record(Message(0, party, frozenset({SERVER}), update))


def stream(folder: Path) -> float:
    """Read every tensor of every update once."""
    total = 0.0
    view = open_transcript(folder).seen_by(SERVER)
    for sender in view.senders():
        for update in view.updates(sender).values():
            for name in update.delta:
                total += float(update.delta[name].square().sum())
    return total


def average(folder: Path) -> float:
    """Read the mean of all updates."""
    delta = open_transcript(folder).seen_by(SERVER).updates(COHORT)[0].delta
    return sum(float(tensor.square().sum()) for tensor in delta.values())


READINGS = {"stream": stream, "average": average, "verify": verify_transcript}


def read(name: str, folder: Path) -> None:
    """Measure one kind of reading in this process."""
    float(torch.ones(8).square().sum())
    reset_peak()
    idle, start = memory("VmRSS"), perf_counter()
    READINGS[name](folder)
    seconds = perf_counter() - start
    above = memory("VmHWM") - idle
    verdict = "reached" if above <= BAR else "MISSED"
    print(
        f"{name:8} peak {above:6.0f} MB above idle ({idle:.0f} MB), bar {BAR} MB: {verdict}; "
        f"{seconds:.1f} s"
    )


def main() -> None:
    """Write once, then measure each kind of reading in a new process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--parameters", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="folder for the transcript; default: /tmp")
    parser.add_argument("--read", choices=sorted(READINGS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.read:
        read(arguments.read, arguments.folder)
        return
    with TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = Path(temporary)
        reset_peak()
        idle, start = memory("VmRSS"), perf_counter()
        write(folder, arguments.updates, arguments.parameters)
        seconds, above = perf_counter() - start, memory("VmHWM") - idle
        size = sum(path.stat().st_size for path in folder.rglob("*.safetensors")) / 1e9
        print(
            f"write    peak {above:6.0f} MB above idle ({idle:.0f} MB); {size:.2f} GB in "
            f"{seconds:.1f} s"
        )
        for name in READINGS:
            subprocess.run(
                [sys.executable, __file__, "--read", name, "--folder", temporary], check=True
            )


if __name__ == "__main__":
    main()
