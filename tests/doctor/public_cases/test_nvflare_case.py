"""NVFlare's hello-dp, rebuilt small and run in its simulator with the recorder."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from overheard.auditing.doctor_targets import recording_evidence
from overheard.doctor.recorded.diagnose import diagnose_run
from overheard.doctor.source.diagnose import diagnose_source

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not find_spec("nvflare"), reason="the extra nvflare is not installed"),
    pytest.mark.skipif(not find_spec("opacus"), reason="the extra opacus is not installed"),
]

ROOT = Path(__file__).parents[3]


def test_an_engine_over_all_rounds_raises_no_alarm(tmp_path: Path):
    job = Path(__file__).with_name("nvflare_hello_dp.py")
    path = os.pathsep.join([str(ROOT), *sys.path])
    done = subprocess.run(
        [sys.executable, job, tmp_path],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = diagnose_run(recording_evidence(tmp_path / "server"))
    assert found.alarms == ()
    assert {"accountant-per-round", "training-metrics-in-clear"} <= {
        one.id for one in found.passed
    }
    assert diagnose_source(job).alarms == ()
