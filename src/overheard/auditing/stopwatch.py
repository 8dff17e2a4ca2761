"""Measures how long runs take, over all the times that they were taken up."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import final

from overheard.archive.layout import committed_rounds
from overheard.archive.seconds import Seconds, read_seconds, write_seconds


@final
class Stopwatch:
    """Runs while some federations train together, and writes down what each of them took.

    Counted is the time up to each lap, shared evenly among the runs, on top of what stands
    beside their transcripts from before an interruption. The time of a lap in which the runs
    were killed is lost. A run with rounds that nobody measured stays unmeasured.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        """Start.

        Args:
            folders: of the runs, one of which at least lacks a round.

        Raises:
            TranscriptError: if what was written before is damaged.
            OutputError: if nothing can be written there.

        """
        self._share = 1 / len(folders)
        self._taken = dict[Path, Seconds]()
        for folder in folders:
            begun = Seconds(0.0, 0.0) if committed_rounds(folder) == 0 else read_seconds(folder)
            if begun is not None:
                self._taken[folder] = begun
                # Written even where it stands there, lest half a file be left of a kill.
                write_seconds(folder, begun)
        self._before = _clocks()

    def lap(self) -> None:
        """Write down what the runs took so far."""
        now, before = _clocks(), self._before
        self._before = now
        busy = None
        if now.cores is not None and before.cores is not None:
            # A worker that was killed takes its time with it.
            busy = self._share * max(0.0, now.cores - before.cores)
        spent = Seconds(self._share * (now.wall - before.wall), busy)
        for folder, taken in self._taken.items():
            self._taken[folder] = taken + spent
            write_seconds(folder, taken + spent)


def _clocks() -> Seconds:
    return Seconds(time.perf_counter(), core_seconds())


def core_seconds() -> float | None:
    """Seconds that cores worked for this process and for those that it started.

    Those that still run are looked up, since workers stay from round to round; None where the
    system does not tell of them: Linux alone does. Takes some 2 ms with a hundred processes.
    """
    if not os.path.exists("/proc/self/stat"):
        return None
    own, ticks = os.getpid(), 0
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            content = Path("/proc", name, "stat").read_bytes()
        except OSError:
            continue  # It is gone; what it worked counts as its parent's from then on.
        # proc_pid_stat(5): behind the name, which stands in brackets, the state, the parent
        # and, from the twelfth on, the ticks of itself and of children that it waited for.
        fields = content.rpartition(b")")[2].split()
        if own in (int(name), int(fields[1])):
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
