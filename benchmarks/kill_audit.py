"""Kill `overheard audit` at random moments, run it again, and compare every byte.

    python benchmarks/kill_audit.py [--kills 20] [--seed 0]

Each kill is a SIGKILL at a moment drawn uniformly from the time in which the audit writes:
from the making of its output folder to the end. Every third audit is killed twice more before
it may finish. Exits with 1 if any file of the output folder differs. Measured times are not
compared, as they differ between runs. POSIX only.
"""

import argparse
import hashlib
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAN = """
title = "killed"
seeds = [0]

[data]
source = "digits"
split = "dirichlet"
clients = 6
examples = 60
auxiliary_per_class = 8

[training]
model = "mlp"
rounds = 4
rate = 0.1

[[arms]]
name = "dropout"
defenses = ["dropout"]

[[threats]]
attacks = ["decaf", "mean_softmax"]
"""

MEASURED_TIMES = re.compile(
    rb'"seconds":\{[^}]*\}|[\d.]+\xc2\xa0(?:s|min|h)\b|takes [\d.]+ times'
    rb"|<bdi>[0-9a-f]{64}</bdi>"
)
"""Measured times in findings and reports, and the digest of the findings."""


def command(folder: Path) -> list[str]:
    """Return the command that audits into this folder."""
    plan = str(folder.parent / "plan.toml")
    return [sys.executable, "-m", "overheard", "audit", plan, "--quiet", "--out", str(folder)]


def fingerprints(folder: Path) -> dict[str, str]:
    """Return the hash of each file in a folder without measured times, by path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(_without_times(path)).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _without_times(path: Path) -> bytes:
    content = path.read_bytes()
    # Digests are of files with times.
    if path.name in ("seconds.json", "digests.json"):
        return b""
    return MEASURED_TIMES.sub(b"", content) if path.suffix in {".json", ".html"} else content


def writing_time(folder: Path) -> float:
    """Audit into a new folder; return the seconds from the making of the folder to the end."""
    with subprocess.Popen(command(folder)) as process:
        began = wait_for(folder, process)
    if process.returncode:
        sys.exit(f"an uninterrupted audit ended with exit code {process.returncode}")
    return time.perf_counter() - began


def wait_for(folder: Path, process: "subprocess.Popen[bytes]") -> float:
    """Wait until a command makes a folder, or ends; return the time."""
    while not folder.exists() and process.poll() is None:
        time.sleep(0.001)
    return time.perf_counter()


def kill(folder: Path, after: float) -> None:
    """Start or resume an audit, and kill it so many seconds after it has begun to write."""
    lock = folder / "in-use.json"
    lock.unlink(missing_ok=True)
    process = subprocess.Popen(command(folder))
    wait_for(lock, process)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> None:
    """Kill, resume and compare; print how many audits were equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator, equal, midway = random.Random(arguments.seed), 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        (Path(temporary) / "plan.toml").write_text(PLAN)
        wholes = [Path(temporary) / f"whole{number}" for number in range(3)]
        # The shortest, so that few kills come after the end.
        duration = min(map(writing_time, wholes))
        expected = fingerprints(wholes[0])
        for number in range(arguments.kills):
            folder = Path(temporary) / f"killed{number}"
            for _ in range(3 if number % 3 == 2 else 1):
                kill(folder, generator.uniform(0, duration))
            partial = fingerprints(folder) if folder.exists() else {}
            midway += bool(partial) and partial != expected
            subprocess.run(command(folder), check=True)
            equal += fingerprints(folder) == expected
    print(
        f"{equal} of {arguments.kills} audits, killed within {duration:.1f} s of writing and "
        f"resumed, equal an uninterrupted audit byte for byte; {midway} were incomplete"
    )
    sys.exit(equal != arguments.kills)


if __name__ == "__main__":
    main()
