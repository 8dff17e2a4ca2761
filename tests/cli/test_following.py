"""The command follows a recording that another thread or process writes."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from overheard.cli import following as module
from tests.auditing.following.growing_copy import GrowingCopy
from tests.cli.conftest import CPU, Command, assert_user_error, contents

pytestmark = pytest.mark.slow


@pytest.fixture
def growing(recording: Path, tmp_path: Path) -> GrowingCopy:
    """The recording of the tiny plan, of which nothing is written yet."""
    return GrowingCopy(recording, tmp_path / "growing")


def write_rounds(growing: GrowingCopy, report: Path) -> None:
    """Write the three rounds of the recording, the second once a report exists."""
    growing.commit_round(0)
    deadline = time.monotonic() + 30
    while not report.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    growing.commit_round(1)
    growing.reveal_truth()
    time.sleep(0.3)
    growing.commit_round(2)


def test_follows_a_run_that_is_written_meanwhile(
    overheard: Command, plan: Path, growing: GrowingCopy, recording: Path, tmp_path: Path
) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    writer = threading.Thread(target=write_rounds, args=(growing, out / "report.html"))
    writer.start()
    said = overheard(
        "audit", plan, "--transcript", growing.folder, "--follow", "--out", out, *CPU
    )
    writer.join()
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].startswith("round 0, ") or lines[0].startswith("waiting for the first")
    assert "claimed, not checked" in next(one for one in lines if one.startswith("round 0"))
    assert f"  the report so far: {out / 'report.html'}" in lines
    assert "the run has ended: all of its rounds are audited now" in lines
    # In the end the folder is that of a plain audit.
    assert overheard("audit", plan, "--transcript", recording, "--out", plain, *CPU).code == 0
    followed = contents(out)
    assert followed.pop("followed.json").startswith(b'{"rounds":0,')
    assert followed == contents(plain)


def test_a_report_so_far_has_no_data_files_and_says_so(
    overheard: Command,
    plan: Path,
    growing: GrowingCopy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, growing_audit = tmp_path / "out", {}
    growing.commit_round(0)
    real = module.write_interim_report

    def write(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        growing_audit.update(contents(out))
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_interim_report", write)
    said = overheard(
        "audit", plan, "--transcript", growing.folder, "--follow", "--out", out, *CPU
    )
    assert said.code == 130
    assert "run the same command again to resume" in said.err
    assert set(growing_audit) == {"followed.json", "in-use.json", "plan.toml", "report.html"}
    assert b"(the run goes on)" in growing_audit["report.html"]


def test_a_run_that_falls_silent_is_audited_and_can_be_followed_again(
    overheard: Command, plan: Path, growing: GrowingCopy, tmp_path: Path
) -> None:
    growing.commit_round(0)
    command = ("audit", plan, "--transcript", growing.folder, "--out", tmp_path / "out", *CPU)
    said = overheard(*command, "--follow", "--follow-timeout", "0.1")
    assert said.code == 0, said.err
    assert "no new round for 0.1 s, so the run counts as over" in said.out
    assert "from 1 round" in " ".join(said.out.split())
    growing.commit_round(1)
    growing.commit_round(2)
    again = overheard(*command, "--follow")
    assert again.code == 0, again.err
    assert "from 2 rounds" in " ".join(again.out.split())


def test_needs_the_folder_of_a_recording(overheard: Command, plan: Path) -> None:
    assert_user_error(overheard("audit", plan, "--follow"), "--follow needs a recording")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_sigterm_ends_the_wait(plan: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "overheard", "audit", str(plan), "--follow"]
    command += ["--transcript", str(tmp_path / "later"), "--out", str(tmp_path / "out"), *CPU]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith("waiting for the first round of ")
        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 143
    assert "Traceback" not in errors
    assert list((tmp_path / "out").iterdir()) == []
