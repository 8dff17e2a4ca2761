"""Run all timing benchmarks, each in a new process: `make bench`, on an idle machine.

python benchmarks                                   ratios go to benchmarks/ratios.json
python benchmarks --check                           the short rows, compared with that file
python benchmarks --against CHECKOUT NAME ...       one benchmark, with the code here and with
                                                    that of another checkout, in turn
"""

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from _ratios import KEPT, VARIABLE, Ratios, compare_with_kept, read_ratios

HERE = Path(__file__).parent

SHORT = (
    ("learning", "--short"),
    ("virtual_clients", "--short"),
    ("flower", "--repeats", "1"),
)
"""The benchmarks of `make bench-check`, with their arguments."""

BY_HAND = {"audit_scale", "identity_scale"}
"""Run by hand, as they write gigabytes, for hours."""

PAIRS = 3
"""Runs of each side with `--against`."""


def main() -> None:
    """Run all benchmarks and report those that failed, check ratios or compare checkouts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare with the kept ratios")
    parser.add_argument("--against", type=Path, help="another checkout of Overheard")
    parser.add_argument("benchmark", nargs=argparse.REMAINDER, help="NAME and its arguments")
    arguments = parser.parse_args()
    if arguments.check:
        _check_kept_ratios()
    elif arguments.against or arguments.benchmark:
        if not arguments.against or not arguments.benchmark:
            parser.error("--against CHECKOUT needs the NAME of a benchmark, and the reverse")
        _compare_checkouts(arguments.against.resolve(), tuple(arguments.benchmark))
    else:
        names = (one.stem for one in sorted(HERE.glob("[!_]*.py")))
        failed = [one for one in names if one not in BY_HAND and _run((one,), KEPT)]
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


def _compare_checkouts(other: Path, benchmark: tuple[str, ...]) -> None:
    """Run a benchmark with both checkouts in turn, and print their ratios."""
    rows = defaultdict[str, list[float]](list)
    for _ in range(PAIRS):
        (seconds, here), (seconds_there, there) = (
            _measure(benchmark, code) for code in (HERE.parent, other)
        )
        rows["seconds of a core"].append(seconds_there / seconds)
        for what in here.keys() & there.keys():
            rows[what].append(here[what]["median"] / there[what]["median"])
    print(f"\n== how many times as fast {HERE.parent} is as {other}, {PAIRS} pairs")
    for what, ratios in rows.items():
        print(f"{what:<58} {median(ratios):6.2f}x  {min(ratios):6.2f} - {max(ratios):6.2f}")


def _measure(benchmark: tuple[str, ...], code: Path) -> tuple[float, Ratios]:
    """Run a benchmark with a checkout's code; return its seconds of a core and its rows."""
    before = os.times()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ratios.json"
        if _run(benchmark, path, code):
            sys.exit(f"failed with the code of {code}")
        rows = read_ratios(path)
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system, rows


def _run(benchmark: tuple[str, ...], ratios: Path, code: Path = HERE.parent) -> int:
    """Run a benchmark with its arguments and a checkout's code; return its exit code."""
    name, *arguments = benchmark
    print(f"\n== {name} " + "=" * (70 - len(name)), flush=True)
    # The published figures use one thread per process.
    settings = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(code / "src"), VARIABLE: str(ratios)}
    return subprocess.run(
        [sys.executable, HERE / f"{name}.py", *arguments],
        check=False,
        env=os.environ | settings,
    ).returncode


if __name__ == "__main__":
    main()
