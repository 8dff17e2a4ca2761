"""Lets everything read every hostile case, and prints what came of it.

A program of its own, for `test_hostile.py` to run: so its memory can be limited, and no type
checker reads tensors that nobody asked for.
"""

import json
import resource
import sys
from dataclasses import asdict
from pathlib import Path

from tests.archive.hostile import contents, recorded, recordings, tricks
from tests.archive.hostile_exports import imports
from tests.archive.hostile_truths import canaries

ROOM = 2**30
"""Bytes that all of this may take beside what is in memory when it begins."""


def main(home: Path) -> None:
    whole = home / "whole"
    recorded(whole)
    files = contents(whole)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
    tallies = {}
    for part in (recordings, tricks, imports, canaries):
        place = home / part.__name__
        place.mkdir()
        tallies[part.__name__] = asdict(part(place, files))
    sys.stdout.write(json.dumps(tallies))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
