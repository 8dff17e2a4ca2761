"""Measures how long runs take, summed over all their resumptions."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import final

from overheard.archive.layout import count_committed_rounds
from overheard.archive.run_time import RunTime, read_run_time, write_run_time


@final
class Stopwatch:
    """A stopwatch that writes down the time of federations that train together.

    The time of each lap is shared evenly among the runs and added to their stored time, so an
    interrupted run continues its count. The time of a lap in which the runs were killed is
    lost. A run with unmeasured rounds stays unmeasured.
    """

    def __init__(self, folders: Sequence[Path], *, inside: Path | None = None) -> None:
        """Start.

        Args:
            folders: the folders of the runs, at least one of which is unfinished.
            inside: the output folder that all are in; None = each is one itself.

        Raises:
            TranscriptError: if a stored time is damaged.
            OutputError: if a folder cannot be written.

        """
        self._inside = inside
        self._share = 1 / len(folders)
        self._elapsed = dict[Path, RunTime]()
        for folder in folders:
            start = (
                RunTime(0.0, 0.0)
                if count_committed_rounds(folder) == 0
                else read_run_time(folder)
            )
            if start is not None:
                self._elapsed[folder] = start
                # Written even if unchanged: this replaces a file that a kill left unfinished.
                write_run_time(folder, start, inside=inside)
        self._last = _clocks()

    def lap(self) -> None:
        """Add the time since the last lap to each run and write it down."""
        now, last = _clocks(), self._last
        self._last = now
        cores = None
        if now.cores is not None and last.cores is not None:
            # The CPU time of a killed worker is lost, so the difference may be negative.
            cores = self._share * max(0.0, now.cores - last.cores)
        lap = RunTime(self._share * (now.wall - last.wall), cores)
        for folder, elapsed in self._elapsed.items():
            self._elapsed[folder] = elapsed + lap
            write_run_time(folder, elapsed + lap, inside=self._inside)


def _clocks() -> RunTime:
    return RunTime(time.perf_counter(), core_seconds())


def core_seconds() -> float | None:
    """Return the CPU seconds of this process and its children; None unless on Linux.

    Running children are looked up in `/proc`, since workers persist across rounds. Takes some
    2 ms with a hundred processes.
    """
    if not os.path.exists("/proc/self/stat"):
        return None
    own, ticks = os.getpid(), 0
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            content = Path("/proc", name, "stat").read_bytes()
        except OSError:
            continue  # It has ended; its CPU time now counts as its parent's.
        # proc_pid_stat(5): the state and the parent follow the name in brackets. The ticks of
        # the process, and of children it has waited for, begin at the twelfth field.
        fields = content.rpartition(b")")[2].split()
        if own in (int(name), int(fields[1])):
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
