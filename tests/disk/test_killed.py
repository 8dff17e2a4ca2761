"""What is killed at any moment and run again ends with the same bytes."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.nightly
@pytest.mark.parametrize("benchmark", ["kill_audit", "kill_recording"])
def test_what_is_killed_20_times_equals_what_was_never_killed(benchmark: str) -> None:
    run = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{benchmark}.py"), "--kills", "20"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
