"""The commands `init` and `plan check`, from a recording to first claims."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CPU, Command, assert_user_error
from tests.planning.conftest import (
    STATED_RECIPE,
    STATED_TASK,
    ForeignRecording,
    foreign,
    simulated,
)

__all__ = ["foreign", "simulated"]


@pytest.fixture
def stated(foreign: ForeignRecording) -> Path:
    return foreign(task=STATED_TASK, model="Logistic()", recipe=STATED_RECIPE)


def test_two_commands_from_a_recording_to_first_claims(
    overheard: Command, stated: Path, tmp_path: Path
):
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    said = overheard("init", plan, "--from-recording", stated)
    assert said.code == 0, said.err
    assert f"Next: overheard audit {plan} --transcript {stated}" in said.out
    audited = overheard("audit", plan, "--transcript", stated, "--out", out, *CPU)
    assert audited.code == 0, audited.err
    assert "Claimed, not checked" in audited.out


def test_names_a_free_folder_if_an_earlier_plan_was_audited(
    overheard: Command, stated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    call = ("init", "plan.toml", "--from-recording", stated, "--force")
    assert "--out" not in overheard(*call).out
    for taken in ("plan-audit", "plan-audit-2"):
        (tmp_path / taken).mkdir()
        (tmp_path / taken / "plan.toml").write_text("of another plan")
    said = overheard(*call).out
    assert f"Next: overheard audit plan.toml --transcript {stated} --out plan-audit-3" in said
    assert "plan-audit-3/report.html" in said


def test_overwrites_only_by_force(overheard: Command, stated: Path, tmp_path: Path):
    plan = tmp_path / "plan.toml"
    plan.write_text("mine")
    call = ("init", plan, "--from-recording", stated)
    assert_user_error(overheard(*call), "exists already", "--force")
    assert plan.read_text() == "mine"
    assert overheard(*call, "--force", "--quiet").code == 0
    assert plan.read_text().startswith("# A first plan")


def test_asks_on_a_terminal(
    overheard: Command, stated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    answers: Iterator[str] = iter([str(stated), ""])
    monkeypatch.setattr("overheard.cli.init._may_ask", lambda *given: not any(given))
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    assert overheard("init", tmp_path / "plan.toml").code == 0
    assert "Logistic" not in (tmp_path / "plan.toml").read_text()
    assert 'model = "logistic"' in (tmp_path / "plan.toml").read_text()


def test_asks_nothing_without_a_terminal(
    overheard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    said = overheard("init", tmp_path / "plan.toml")
    assert said.code == 0
    assert 'source = "digits"' in (tmp_path / "plan.toml").read_text()


def test_a_check_prints_lines_or_json(overheard: Command, plan: Path):
    said = overheard("plan", "check", plan, "--no-estimate")
    assert said.code == 0
    assert "runs     bias_inversion: label_shares, 3 targets" in said.out
    told = json.loads(overheard("plan", "check", plan, "--no-estimate", "--json").out)
    assert told["runs"] == 1
    assert told["attacks"][0]["able"] == 3


def test_a_check_of_a_plan_in_which_nothing_can_run_fails(overheard: Command, plan: Path):
    plan.write_text(plan.read_text().replace("auxiliary_per_class = 4\n", ""))
    said = overheard("plan", "check", plan, "--no-estimate")
    assert said.code == 2
    assert "No attack can run." in said.out
    assert "labelled auxiliary examples of every class" in said.out
