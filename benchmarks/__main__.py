"""Run all timing benchmarks, each in a new process: `make bench`, on an idle machine."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

LONG_RUNNING = {
    "calibrate",
    "identity",
    "identity_scale",
    "label_share_doubts",
    "label_shares",
    "membership",
    "mm_aug",
    "shift",
    "shift_alarms",
    "whispers",
}
"""Run by hand, as they take hours and resume if stopped."""

UNTIMED = {"reference"}
"""Run by hand, as it measures no time."""


def main() -> None:
    """Run all benchmarks and report those that failed."""
    failed = []
    for benchmark in sorted(HERE.glob("[!_]*.py")):
        if benchmark.stem in LONG_RUNNING | UNTIMED:
            continue
        print(f"\n== {benchmark.stem} " + "=" * (70 - len(benchmark.stem)), flush=True)
        # The published figures use one thread per process.
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if subprocess.run([sys.executable, benchmark], check=False, env=environment).returncode:
            failed.append(benchmark.stem)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
