"""Runs every benchmark in turn, each in a fresh process: `make bench`, on an idle machine."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

BY_THE_HOUR = {"identity", "identity_scale", "label_shares", "shift"}
"""Run by hand, as they take hours and go on where they were stopped."""

UNMEASURED = {"reference"}
"""Run by hand, as they measure no time."""


def main() -> None:
    """Run them all; say at the end which ones failed."""
    failed = []
    for benchmark in sorted(HERE.glob("[!_]*.py")):
        if benchmark.stem in BY_THE_HOUR | UNMEASURED:
            continue
        print(f"\n== {benchmark.stem} " + "=" * (70 - len(benchmark.stem)), flush=True)
        # One thread a process, as the figures are meant.
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if subprocess.run([sys.executable, benchmark], check=False, env=environment).returncode:
            failed.append(benchmark.stem)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
