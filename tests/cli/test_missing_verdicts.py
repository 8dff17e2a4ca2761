"""The command says before an audit which verdicts it cannot give."""

import io
from pathlib import Path
from shutil import copytree

from rich.console import Console

from overheard.archive.layout import truth_path
from overheard.cli.audit_and_report import NO_TRUTH, print_missing_verdicts
from overheard.plans.built_in import built_in_plan
from overheard.plans.plan import parse_plan
from tests.cli.conftest import Command, assert_user_error

FEW = """
[data]
source = "digits"

[training]
model = "logistic"
rounds = 1
rate = 0.1

[[threats]]
attacks = ["decaf"]
"""


def printed(plan_text: str | None, recording: Path | None) -> str:
    console = Console(file=io.StringIO(), width=300)
    plan = built_in_plan() if plan_text is None else parse_plan(plan_text, "plan")
    print_missing_verdicts(plan, recording, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_recording_without_ground_truth_has_no_verdict(
    finished: Path, tmp_path: Path
) -> None:
    (recording,) = (finished / "runs").iterdir()
    copy = copytree(recording, tmp_path / "copy")
    truth_path(copy).unlink()
    assert printed(FEW, copy) == f"{NO_TRUTH}\n"


def test_a_plan_for_recordings_is_refused_before_any_advice(
    overheard: Command, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(FEW)
    said = overheard("audit", plan, "--out", tmp_path / "out")
    assert_user_error(said, "--transcript")
    assert "p-value" not in said.err
