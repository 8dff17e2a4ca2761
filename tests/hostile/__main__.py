"""`python -m tests.hostile`: runs the corpus and prints how each class ended at each entry."""

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.hostile.audit_hook import WatchedCommands
from tests.hostile.cells import Cell, CellResult, Corpus, cells_of
from tests.hostile.entries import ENTRIES
from tests.hostile.workspace import build

WORST = 20


def main() -> int:
    """Run the cells that the options select; return 1 if any has a problem."""
    options = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    options.add_argument("--most", type=int, default=12, help="cells of a class at an entry")
    options.add_argument("--entry", default="", help="a part of the names of entries")
    options.add_argument("--kind", default="", help="a part of the names of classes")
    options.add_argument("--processes", type=int, default=2, help="commands at a time")
    chosen = options.parse_args()
    entries = [entry for entry in ENTRIES if chosen.entry in entry.row]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        workspace = build(home / "workspace")

        def run(number: int) -> list[CellResult]:
            with WatchedCommands() as commands:
                corpus = Corpus(workspace, home / f"process{number}", commands)
                return [
                    _run(corpus, cell)
                    for entry in entries[number :: chosen.processes]
                    for cell in cells_of(entry, workspace, chosen.most)
                    if chosen.kind in cell.change.kind
                ]

        with ThreadPoolExecutor(chosen.processes) as pool:
            results = [one for found in pool.map(run, range(chosen.processes)) for one in found]
    print_results(results)
    return int(any(one.problems for one in results))


def _run(corpus: Corpus, cell: Cell) -> CellResult:
    """Run a cell, and print what is wrong with it."""
    result = corpus.run(cell)
    if result.problems:
        problems = "; ".join(result.problems)[:600]
        say(f"PROBLEM {cell.name}\n  {problems}\n  {result.said}\n")
    return result


def print_results(results: list[CellResult]) -> None:
    """Print the table and the worst cells."""
    ends = ("clean error", "same result", "harmless", "failed")
    counts: dict[str, Counter[str]] = {}
    for one in results:
        counts.setdefault(one.cell.entry.row, Counter())[one.end] += 1
    say(f"{'entry':<40}" + "".join(f"{end:>13}" for end in ends))
    for row, count in counts.items():
        say(f"{row:<40}" + "".join(f"{count[end]:>13}" for end in ends))
    total = Counter(one.end for one in results)
    say(f"{'all ' + str(len(results)):<40}" + "".join(f"{total[end]:>13}" for end in ends))
    say(f"\nThe {WORST} with the most memory, in MB:")
    for one in sorted(results, key=lambda one: -one.peak_bytes)[:WORST]:
        say(f"  {one.peak_bytes >> 20:>6}  {one.end:<12} {one.cell.name}")
    say(f"\nThe {WORST} that took longest, in seconds:")
    for one in sorted(results, key=lambda one: -one.seconds)[:WORST]:
        say(f"  {one.seconds:>6.2f}  {one.end:<12} {one.cell.name}")


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
