"""Time adds up over interruptions, and is shared by those who train together."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from overheard.archive.layout import seconds_path
from overheard.archive.run_time import RunTime, read_run_time, write_run_time
from overheard.auditing.stopwatch import Stopwatch, core_seconds
from overheard.disk.writing import partial_path

LINUX = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system does not tell of processes"
)


def wall(folder: Path) -> float:
    seconds = read_run_time(folder)
    assert seconds is not None
    return seconds.wall


def test_each_lap_adds_to_a_run_that_starts_at_zero(tmp_path: Path):
    watch = Stopwatch([tmp_path])
    assert read_run_time(tmp_path) == RunTime(0.0, 0.0)
    taken = []
    for _ in range(2):
        time.sleep(0.05)
        watch.lap()
        taken.append(wall(tmp_path))
    assert 0.05 <= taken[0] < taken[0] + 0.05 <= taken[1]


def test_an_interrupted_run_continues_its_time(recording: Path, tmp_path: Path):
    folder = shutil.copytree(recording, tmp_path / "run")
    write_run_time(folder, RunTime(100.0, 50.0))
    begun = time.perf_counter()
    watch = Stopwatch([folder])
    time.sleep(0.05)
    watch.lap()
    assert 100.05 <= wall(folder) <= 100 + time.perf_counter() - begun


def test_a_file_that_a_kill_left_unfinished_changes_nothing(recording: Path, tmp_path: Path):
    folder = shutil.copytree(recording, tmp_path / "run")
    taken, half = wall(folder), partial_path(seconds_path(folder))
    half.write_text('{"wa')
    Stopwatch([folder])
    assert wall(folder) == taken


def test_runs_that_train_together_share_the_time(tmp_path: Path):
    folders = [tmp_path / name for name in "abcd"]
    begun = time.perf_counter()
    watch = Stopwatch(folders)
    time.sleep(0.08)
    watch.lap()
    spent = time.perf_counter() - begun
    walls = [wall(folder) for folder in folders]
    assert len(set(walls)) == 1
    assert 0.08 / 4 <= walls[0] <= spent / 4


def test_unmeasured_rounds_leave_a_run_unmeasured(recording: Path, tmp_path: Path):
    folder = shutil.copytree(recording, tmp_path / "run")
    seconds_path(folder).unlink()
    Stopwatch([folder, tmp_path / "new"]).lap()
    assert read_run_time(folder) is None
    assert wall(tmp_path / "new") > 0


def test_removing_a_transcript_resets_its_time(recording: Path, tmp_path: Path):
    folder = shutil.copytree(recording, tmp_path / "run")
    shutil.rmtree(folder / "transcript")
    assert wall(folder) > 0
    Stopwatch([folder])
    assert wall(folder) == 0


def busy() -> float:
    taken = core_seconds()
    assert taken is not None
    return taken


@pytest.mark.slow
@LINUX
def test_counts_cpu_time_of_this_process_but_not_sleep():
    before = busy()
    time.sleep(0.3)
    slept = busy() - before
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    assert slept < 0.15
    assert busy() - before - slept == pytest.approx(0.3, abs=0.1)


@LINUX
def test_counts_running_and_ended_workers():
    work = (
        "import time\n"
        "end = time.process_time() + 0.4\n"
        "while time.process_time() < end: pass\n"
        "print(flush=True); input()"
    )
    before = busy()
    worker = subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdout is not None
    worker.stdout.readline()
    alive = busy() - before
    worker.communicate(b"\n")
    gone = busy() - before
    assert alive >= 0.38  # ticks are of 0.01 s
    assert gone >= alive
