"""Ratios of two speeds that `make bench` keeps, so that a later change shows what it cost.

A benchmark calls `keep_ratio` for each of its rows. Nothing is kept unless the environment
names a file, as `make bench` and `make bench-check` do.
"""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

import torch

KEPT = Path(__file__).with_name("ratios.json")
"""The file of `make bench`."""

VARIABLE = "OVERHEARD_RATIOS"
"""Environment variable with the path of the file to which a benchmark adds its rows."""

SMALLEST_SHARE = 0.75
"""A ratio below this share of the kept one fails `make bench-check`, on the same processor."""

CPU_INFO = Path("/proc/cpuinfo")
"""Linux's description of the processors."""


class KeptRatio(TypedDict):
    """A row: the ratios of several pairs of runs, and when and where they were measured."""

    median: float
    smallest: float
    largest: float
    pairs: int
    day: str
    load: float
    machine: str


Ratios = dict[str, KeptRatio]
"""Rows by what they measure."""


def keep_ratio(what: str, ratios: Sequence[float]) -> None:
    """Add a row to the file that the environment names; larger ratios are better."""
    named = os.environ.get(VARIABLE)
    if named is None:
        return
    row: KeptRatio = {
        "median": round(statistics.median(ratios), 3),
        "smallest": round(min(ratios), 3),
        "largest": round(max(ratios), 3),
        "pairs": len(ratios),
        "day": datetime.now(UTC).date().isoformat(),
        "load": round(os.getloadavg()[0], 1),
        "machine": f"{_processor()}, {os.cpu_count()} cores, torch {torch.__version__}",
    }
    path = Path(named)
    path.write_text(json.dumps(read_ratios(path) | {what: row}, indent=2) + "\n")


def read_ratios(path: Path) -> Ratios:
    """Return all rows of a file by what they measure; {} if there is no file."""
    rows: Ratios = json.loads(path.read_text()) if path.exists() else {}
    return rows


def compare_with_kept(measured: Ratios) -> list[str]:
    """Print each measured row beside the kept one, and return the rows that fell too far.

    Ratios of two processors differ by up to a third, so only those of one machine are judged.
    """
    kept, fallen = read_ratios(KEPT), []
    for what, row in measured.items():
        now = row["median"]
        if what not in kept:
            print(f"{what:<58} {now:6.2f}x, not kept yet: run `make bench`")
            continue
        before = kept[what]
        if before["machine"] != row["machine"]:
            verdict = f"not judged: kept on {before['machine']}"
        elif now < SMALLEST_SHARE * before["median"]:
            verdict = "FELL"
            fallen.append(what)
        else:
            verdict = "holds"
        old = f"{before['median']:6.2f}x of {before['day']}"
        print(f"{what:<58} {now:6.2f}x, kept {old}  {verdict}")
    for what in sorted(kept.keys() - measured.keys()):
        print(f"{what:<58} not among the rows of this check")
    return fallen


def _processor() -> str:
    """Return the name of this machine's processor."""
    if CPU_INFO.exists():
        for line in CPU_INFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
