"""Kill imports and recorders at random moments, and check what they leave.

    python benchmarks/kill_recording.py [--kills 20] [--seed 0]

Each kill is a SIGKILL of a forked process, at a moment drawn uniformly from the duration of a
whole import or recording. An import is then run again, and must equal an uninterrupted one byte
for byte. A recorder cannot continue a run that it did not see: the rounds that it committed
must equal those of an uninterrupted recording, and the next run must go to a folder of its own.
Exits with 1 if anything differs. POSIX only.
"""

import argparse
import logging
import multiprocessing
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from overheard.archive.layout import count_committed_rounds, manifest_path, round_folder
from overheard.archive.reader import verify_transcript
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, client
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.folder_import import import_recording
from overheard.recorders.run_info import RunInfo

FORK = multiprocessing.get_context("fork")
ROUNDS, CLIENTS, PARAMETERS = 8, 6, 20_000


def export(folder: Path) -> None:
    """Write the weights of a run, as another framework would."""
    generator = np.random.default_rng(0)
    for number in range(ROUNDS):
        inside = folder / f"round-{number:04d}"
        inside.mkdir(parents=True)
        for name in ("global", *(f"client-{index}" for index in range(CLIENTS))):
            np.savez(inside / f"{name}.npz", weight=generator.normal(size=PARAMETERS))


def record(folder: Path) -> None:
    """Record a run of as many rounds."""
    torch.manual_seed(0)
    scribe = AsyncWriter(folder, RunInfo("a framework 1.0"))
    parties = [client(index) for index in range(CLIENTS)]
    for _ in range(ROUNDS):
        scribe.begin_round([SERVER, *parties])
        model = {"weight": torch.randn(PARAMETERS)}
        scribe.write(SERVER, frozenset(parties), partial(Broadcast, model))
        for party in parties:
            delta = {"weight": torch.randn(PARAMETERS)}
            scribe.write(party, frozenset({SERVER}), partial(Update, delta, 5))
    scribe.close()


def files(folder: Path) -> dict[str, bytes]:
    """Return the content of each file in a folder, by path; the mark of the end names it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): b"" if path.name == "ended.json" else path.read_bytes()
        for path in paths
    }


def run_for(seconds: float | None, call: Callable[[Path], object], folder: Path) -> float:
    """Call a function in a new process, killed after so many seconds; return the time."""
    began = time.perf_counter()
    child = FORK.Process(target=call, args=(folder,))
    child.start()
    child.join(seconds)
    child.kill()
    child.join()
    return time.perf_counter() - began


def is_import_equal(killed: Path, whole: Path, again: Callable[[Path], object]) -> bool:
    """Return whether a killed import that is run again equals an uninterrupted one."""
    run_for(None, again, killed)
    return files(killed) == files(whole)


def is_recording_equal(killed: Path, whole: Path) -> bool:
    """Return whether the committed rounds are those of the whole recording."""
    if not manifest_path(killed / "transcript").exists():
        return not files(killed) or all(name.endswith(".part") for name in files(killed))
    rounds = count_committed_rounds(killed)
    verify_transcript(killed)
    is_same = all(
        files(round_folder(killed / "transcript", number))
        == files(round_folder(whole / "transcript", number))
        for number in range(rounds)
    )
    before = files(killed)
    run_for(None, record, killed)
    is_beside = not killed.exists() or files(killed.with_name(f"{killed.name}-2")) == files(
        whole
    )
    return is_same and is_beside and files(killed) == before


def main() -> int:
    """Kill, repeat and compare; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    # Each next run warns that it goes to another folder.
    logging.disable(logging.WARNING)
    moments, failed = random.Random(arguments.seed), 0
    with TemporaryDirectory() as temporary:
        folders = Path(temporary)
        export(folders / "exported")
        read = partial(import_recording, folders / "exported")
        calls = {"import": read, "recorder": record}
        for name, call in calls.items():
            whole = folders / f"{name}-whole"
            seconds, equal, midway = run_for(None, call, whole), 0, 0
            for number in range(arguments.kills):
                killed = folders / f"{name}-killed{number}"
                run_for(moments.uniform(0, seconds), call, killed)
                midway += killed.exists() and files(killed).keys() != files(whole).keys()
                if name == "import":
                    equal += is_import_equal(killed, whole, call)
                else:
                    equal += is_recording_equal(killed, whole)
            print(f"{name}: {equal} equal of {arguments.kills}, {midway} killed midway")
            failed += equal != arguments.kills
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
