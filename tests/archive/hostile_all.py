"""Runs all readers on all malicious cases, and prints the results.

A separate program for `test_hostile.py`, so that its memory can be limited, and the runtime
type checker does not read tensors.
"""

import json
import resource
import sys
from dataclasses import asdict
from pathlib import Path

from tests.archive.hostile import contents, recorded, recordings, tricks
from tests.archive.hostile_exports import imports
from tests.archive.hostile_truths import canaries

MEMORY_LIMIT = 2**30
"""Additional bytes of memory that all cases together may use."""


def main(home: Path) -> None:
    intact = home / "whole"
    recorded(intact)
    files = contents(intact)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_LIMIT, used + MEMORY_LIMIT))
    results_by_kind = {}
    for run_cases in (recordings, tricks, imports, canaries):
        folder = home / run_cases.__name__
        folder.mkdir()
        results_by_kind[run_cases.__name__] = asdict(run_cases(folder, files))
    sys.stdout.write(json.dumps(results_by_kind))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
