"""`python -m tests.nulls FILE`: audits in which nothing can leak, and how often one says so.

The file keeps the verdicts, so that a stopped run goes on. It does not note the code that gave
them, so begin another file after a change of the product. Numbers of audits go round all
federations, so that a table can be printed at any time (`--audits 0`).
"""

import argparse
from itertools import product
from pathlib import Path

from tests.nulls.audits import federations
from tests.nulls.table import Results, table_lines


def main() -> int:
    """Make the audits that the options select; return 1 if a cell is too high."""
    options = argparse.ArgumentParser(prog="python -m tests.nulls", description=__doc__)
    options.add_argument("file", type=Path, help="where the verdicts are kept, one a line")
    options.add_argument("--audits", type=int, default=120, help="audits of each federation")
    options.add_argument("--only", default="", help="a part of the names of federations")
    chosen = options.parse_args()
    wanted = [one for one in federations() if chosen.only in one.name]
    results = Results(chosen.file)
    done = results.done()
    for number, federation in product(range(chosen.audits), wanted):
        if federation.source.why_missing or (federation.name, number) in done:
            continue
        results.audit(federation, number)
        print(f"{number + 1}/{chosen.audits} {federation.name}", flush=True)
    counts = results.counts(wanted)
    print("\n".join(table_lines(counts)))
    return int(any(cell.is_too_high for cell in counts.values()))


if __name__ == "__main__":
    raise SystemExit(main())
