"""Kills `overheard audit` at random moments, gives it again, and compares every byte.

    python benchmarks/kill_audit.py [--kills 20] [--seed 0]

Each kill is a SIGKILL at a moment drawn uniformly over the time that the whole command takes,
its start included. Exits with 1 if any file of the output folder differs, but for what clocks
said: no two runs take the same time. POSIX only.
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

CLOCKS = re.compile(rb'"seconds":\{[^}]*\}|[\d.]+\xc2\xa0(?:s|min|h)\b|takes [\d.]+ times')
"""How long a run took, as findings and report tell it."""


def command(folder: Path) -> list[str]:
    """The audit into this folder."""
    plan = str(folder.parent / "plan.toml")
    return [sys.executable, "-m", "overheard", "audit", plan, "--quiet", "--out", str(folder)]


def fingerprints(folder: Path) -> dict[str, str]:
    """What every file of a folder holds, but for times, by its path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(_untimed(path)).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _untimed(path: Path) -> bytes:
    content = path.read_bytes()
    if path.name == "seconds.json":
        return b""
    return CLOCKS.sub(b"", content) if path.suffix in {".json", ".html"} else content


def main() -> None:
    """Kill, resume, compare; say how many were equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    chance, equal, midway = random.Random(told.seed), 0, 0
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "plan.toml").write_text(PLAN)
        began = time.perf_counter()
        subprocess.run(command(Path(home) / "whole"), check=True)
        length = time.perf_counter() - began
        wanted = fingerprints(Path(home) / "whole")
        for number in range(told.kills):
            folder = Path(home) / f"killed{number}"
            process = subprocess.Popen(command(folder))
            try:
                process.wait(chance.uniform(0, length))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            left = fingerprints(folder) if folder.exists() else {}
            midway += bool(left) and left != wanted
            subprocess.run(command(folder), check=True)
            equal += fingerprints(folder) == wanted
    print(
        f"{equal} of {told.kills} audits killed within {length:.1f} s and resumed are equal "
        f"byte for byte to one never killed; {midway} had begun to write and were not done"
    )
    sys.exit(equal != told.kills)


if __name__ == "__main__":
    main()
