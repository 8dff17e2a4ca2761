"""Run all timing benchmarks, each in a new process: `make bench`, on an idle machine.

Ratios of speeds go to benchmarks/ratios.json. `python benchmarks --check` measures only the
short rows (a few minutes), and compares them with the ratios in that file.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from _ratios import KEPT, VARIABLE, compare_with_kept, read_ratios

HERE = Path(__file__).parent

SHORT = (
    ("learning", "--short"),
    ("virtual_clients", "--short"),
    ("flower", "--repeats", "1"),
)
"""The benchmarks of `make bench-check`, with their arguments."""

BY_HAND = {"audit_scale", "identity_scale"}
"""Run by hand, as they write gigabytes, for hours."""


def main() -> None:
    """Run all benchmarks and report those that failed, or check the kept ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare with the kept ratios")
    if parser.parse_args().check:
        _check_kept_ratios()
        return
    failed = [
        one.stem
        for one in sorted(HERE.glob("[!_]*.py"))
        if one.stem not in BY_HAND and _run((one.stem,), KEPT)
    ]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _check_kept_ratios() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ratios.json"
        failed = [one[0] for one in SHORT if _run(one, path)]
        print("\n== compared with benchmarks/ratios.json")
        fallen = compare_with_kept(read_ratios(path))
    if failed or fallen:
        sys.exit(
            f"failed: {', '.join((*failed, *fallen))}; a busy machine may be the cause: run "
            "`make bench-check` again while nothing else runs"
        )


def _run(benchmark: tuple[str, ...], ratios: Path) -> int:
    """Run a benchmark with its arguments; return its exit code."""
    name, *arguments = benchmark
    print(f"\n== {name} " + "=" * (70 - len(name)), flush=True)
    # The published figures use one thread per process.
    environment = os.environ | {"OMP_NUM_THREADS": "1", VARIABLE: str(ratios)}
    return subprocess.run(
        [sys.executable, HERE / f"{name}.py", *arguments], check=False, env=environment
    ).returncode


if __name__ == "__main__":
    main()
