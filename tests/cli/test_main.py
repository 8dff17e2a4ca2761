"""The command: a user error gives one message and exit code 2, and no work is lost."""

import errno
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

from overheard.learning.models.conv_net import ConvNet
from overheard.learning.workers.processes import are_supported
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from tests.auditing.plans import TINY, TRAINING, replace_tables
from tests.cli.conftest import CPU, Command, assert_user_error, contents


def edited(plan: Path, right: str, wrong: str) -> Path:
    text = plan.read_text()
    assert right in text
    plan.write_text(text.replace(right, wrong))
    return plan


@pytest.mark.slow
def test_audits_reports_and_resumes(overheard: Command, plan: Path, tmp_path: Path):
    said = overheard("audit", plan, "--out", tmp_path / "out", *CPU)
    assert said.code == 0
    assert said.err == ""
    assert str(tmp_path / "out" / "report.html") in said.out.replace("\n", "")
    last = said.out.splitlines()[-1]
    assert last == f"Evidence for a data-protection file: overheard evidence {tmp_path / 'out'}"
    left = contents(tmp_path / "out")
    assert {"report.html", "findings.json", "findings.csv", "plan.toml"} <= set(left)
    assert overheard("audit", plan, "--out", tmp_path / "out", *CPU) == said
    assert contents(tmp_path / "out") == left


def test_the_seed_option_replaces_the_seeds_of_the_plan(
    overheard: Command, plan: Path, tmp_path: Path
):
    out = tmp_path / "out"
    assert overheard("audit", plan, "--seed", "4", "--quiet", "--out", out, *CPU).code == 0
    assert [run.name for run in (out / "runs").iterdir()] == ["no_defense-seed4"]
    assert "4,\n" in (out / "plan.toml").read_text()


def test_refuses_a_missing_plan(overheard: Command, tmp_path: Path):
    said = overheard("audit", tmp_path / "missing.toml")
    assert_user_error(said, str(tmp_path / "missing.toml"), "cannot be read")


def test_an_audit_in_which_nothing_was_asked_is_an_error(
    overheard: Command, plan: Path, tmp_path: Path
):
    edited(plan, 'observers = [\n    "server",\n]', 'observers = ["client/*"]')
    said = overheard("audit", plan, "--out", tmp_path / "out", *CPU)
    assert_user_error(
        said, "nothing was measured: no attack could be asked", "bias_inversion: "
    )
    # The report tells the same, attack by attack.
    assert (tmp_path / "out" / "report.html").exists()


def test_lists_every_mistake_of_a_plan(overheard: Command, plan: Path, tmp_path: Path):
    edited(plan, "clients = 3", "clinets = 3")
    edited(plan, "rounds = 2", 'rounds = "2"')
    edited(plan, 'kind = "logistic"', 'kind = "logistics"')
    said = overheard("audit", plan, "--out", tmp_path / "out")
    assert_user_error(
        said,
        f"{plan}: 3 errors to fix",
        "data.clinets: Extra inputs are not permitted: did you mean 'clients'?",
        "training.rounds: must be a whole number, got '2'",
        "training.model: did you mean 'logistic'? name one of",
    )
    assert not (tmp_path / "out").exists()


def test_refuses_a_missing_data_set(overheard: Command, plan: Path, tmp_path: Path):
    edited(plan, 'kind = "digits"', 'kind = "wisdm"')
    (tmp_path / "data").mkdir()
    said = overheard("audit", plan, "--data", tmp_path / "data", "--out", tmp_path / "out")
    assert_user_error(said, str(tmp_path / "data"), "put it at")
    assert not (tmp_path / "out").exists()


def test_refuses_a_missing_data_folder(overheard: Command, plan: Path, tmp_path: Path):
    said = overheard("audit", plan, "--data", tmp_path / "nowhere", "--out", tmp_path / "out")
    assert_user_error(said, str(tmp_path / "nowhere"), "does not exist: correct --data")


@pytest.mark.parametrize("suffix", ["npz", "parquet", "csv.gz"])
def test_refuses_a_corrupt_data_file(
    overheard: Command, plan: Path, tmp_path: Path, suffix: str
):
    data = tmp_path / f"mine.{suffix}"
    data.write_bytes(b"PK\x03\x04 this is no archive" * 20)
    edited(plan, 'kind = "digits"', f'kind = "own"\nreference = "{data}"')
    said = overheard("audit", plan, "--out", tmp_path / "out")
    assert_user_error(said, data.name)
    assert not (tmp_path / "out").exists()


def test_refuses_a_missing_device(overheard: Command, plan: Path, tmp_path: Path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    said = overheard("audit", plan, "--device", "cuda", "--out", tmp_path / "out")
    assert_user_error(said, "torch finds no GPU; choose 'auto' or 'cpu'")


def test_does_not_change_the_folder_of_another_plan(
    overheard: Command, plan: Path, finished: Path
):
    before = contents(finished)
    said = overheard("audit", edited(plan, "rounds = 2", "rounds = 3"), "--out", finished)
    assert_user_error(said, str(finished), "another plan (-rounds = 2; +rounds = 3)", "--out")
    assert contents(finished) == before


def refusing(number: int, *, after: int) -> Callable[[int], None]:
    """Return a disk flush that fails after this many successful calls."""
    left, flush = [after], os.fsync

    def fsync(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(number, os.strerror(number))
        flush(handle)

    return fsync


@pytest.mark.slow
@pytest.mark.parametrize("after", [7, 36], ids=["within a round", "among the cells"])
def test_an_audit_resumes_after_a_full_disk(
    overheard: Command,
    plan: Path,
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
):
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refusing(errno.ENOSPC, after=after))
        said = overheard("audit", plan, "--out", tmp_path / "out", *CPU)
    assert_user_error(said, str(tmp_path / "out"), "the disk is full")
    assert not list((tmp_path / "out").rglob("*.part"))
    assert overheard("audit", plan, "--out", tmp_path / "out", "--quiet", *CPU).code == 0
    ours = contents(tmp_path / "out")
    assert {name: ours[name] for name in contents(finished)} == contents(finished)


def test_any_system_error_is_one_message(
    overheard: Command, plan: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: object) -> None:
        raise OSError("connection reset")

    monkeypatch.setattr("overheard.plans.built_in.read_plan", broken)
    assert_user_error(overheard("audit", plan), "system error: connection reset")


@pytest.mark.slow
def test_ctrl_c_saves_finished_work_and_says_how_to_resume(
    overheard: Command, plan: Path, finished: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    infer, calls = MeanSoftmax.infer, itertools.count()

    def interrupted(*given: Any) -> object:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return infer(*given)

    with monkeypatch.context() as patched:
        patched.setattr(MeanSoftmax, "infer", interrupted)
        said = overheard("audit", plan, "--out", tmp_path / "out", *CPU)
    assert said.code == 130
    assert said.out == ""
    assert said.err.strip() == (
        "overheard: interrupted; finished work is saved: run the same command again to resume"
    )
    # Both attacks had read all rounds together, and were reading the first round.
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 2
    assert overheard("audit", plan, "--out", tmp_path / "out", "--quiet", *CPU).code == 0
    ours = contents(tmp_path / "out")
    assert {name: ours[name] for name in contents(finished)} == contents(finished)


def descendants(first: int) -> list[int]:
    told = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], check=True, capture_output=True, text=True
    )
    pairs = [tuple(map(int, line.split())) for line in told.stdout.splitlines()]
    found = [first]
    for above in found:  # it grows by the children of each
        found += [number for number, parent in pairs if parent == above]
    return found[1:]


def end_soon(numbers: Sequence[int]) -> bool:
    """Wait for processes; one that SIGTERM met while it started ends itself once it has."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        told = subprocess.run(
            ["ps", "-A", "-o", "pid=,stat="], check=True, capture_output=True, text=True
        )
        states = dict(line.split() for line in told.stdout.splitlines())
        # A zombie has ended; not every container has a first process that collects it.
        if all(states.get(str(number), "Z").startswith("Z") for number in numbers):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
@pytest.mark.skipif(not are_supported(), reason="workers inherit a connection")
@pytest.mark.skipif(shutil.which("ps") is None, reason="no `ps` tells the workers")
def test_sigterm_ends_training_and_workers_like_ctrl_c(tmp_path: Path):
    # Enough epochs to make two workers worthwhile after the first client has trained.
    slow = TRAINING.model_copy(update={"model": ConvNet(width=32), "epochs": 50})
    (tmp_path / "plan.toml").write_text(replace_tables(TINY, training=slow).toml())
    arguments = ("--out", tmp_path / "out", "--device", "cpu", "--workers", "2")
    command = subprocess.Popen(
        [sys.executable, "-m", "overheard", "audit", tmp_path / "plan.toml", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    workers = list[int]()
    # Two workers, the process that forks them, and the one that removes their semaphores.
    expected = 4 if sys.platform == "linux" else 3
    try:
        while len(workers) < expected and command.poll() is None:
            time.sleep(0.1)
            workers = descendants(command.pid)
        command.terminate()
        out, told = command.communicate(timeout=60)
        assert (command.returncode, out, told) == (
            143,
            "",
            "overheard: terminated; finished work is saved: run the same command again to "
            "resume\n",
        )
        assert len(workers) == expected
        assert end_soon(workers)
    finally:
        for number in (command.pid, *workers):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        with command:  # its pipes are closed
            pass


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "--sede", "3"),
        ("audit", "--seed", "-1"),
        ("audit", "--seed", "2147483648"),
        ("audit", "--workers", "0"),
        ("audit", "--device", "tpu"),
        ("list", "attakcs"),
        ("list",),
        ("show",),
        ("audti",),
    ],
    ids=" ".join,
)
def test_a_wrong_call_shows_the_usage(overheard: Command, arguments: tuple[str, ...]):
    said = overheard(*arguments)
    assert said.code == 2
    assert said.out == ""
    assert "Usage: overheard" in said.err
    assert "Traceback" not in said.err


def test_the_schema_lists_every_table(overheard: Command):
    said = overheard("schema")
    assert said.code == 0
    assert set(json.loads(said.out)["properties"]) == set(type(TINY).model_fields)


def test_prints_its_version(overheard: Command):
    said = overheard("--version")
    assert (said.code, said.out.strip()) == (0, f"overheard {version('overheard')}")
