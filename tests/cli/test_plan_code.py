"""A plan's code of others is listed before it runs, and refused with --no-code."""

import json
import sys
from pathlib import Path

import pytest

from overheard.core.own_code.reference import NO_CODE_VARIABLE
from overheard.learning.models.own import Own
from tests.auditing.plans import TINY
from tests.cli.conftest import Command, assert_user_error

NAME = "module_that_a_plan_names"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a plan whose network fails when it is imported."""
    monkeypatch.chdir(tmp_path)
    # What a command changes of them is undone after the test.
    monkeypatch.setenv(NO_CODE_VARIABLE, "0")
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path(f"{NAME}.py").write_text("raise RuntimeError('it ran')")
    training = TINY.training.model_copy(update={"model": Own(f"{NAME}:Net")})
    Path("plan.toml").write_text(TINY.model_copy(update={"training": training}).toml())
    return tmp_path


LISTED = f"  training.model: {NAME}:Net ({{folder}}/{NAME}.py)"


@pytest.mark.parametrize("arguments", [("plan", "check", "plan.toml"), ("audit", "plan.toml")])
def test_lists_the_code_before_it_runs(
    folder: Path, overheard: Command, arguments: tuple[str, ...]
):
    said = overheard(*arguments)
    lines = (said.out if arguments[0] == "plan" else said.err).splitlines()
    assert lines[:2] == [
        "The plan runs code that is not Overheard's, which can do all that you can:",
        LISTED.format(folder=folder),
    ]
    assert "RuntimeError: it ran" in said.err.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "check", "plan.toml"),
        ("audit", "plan.toml"),
        ("canaries", "plan.toml", "--out", "canaries"),
    ],
)
def test_refuses_the_code_of_a_plan(
    folder: Path, overheard: Command, arguments: tuple[str, ...]
):
    said = overheard(*arguments, "--no-code")
    assert_user_error(said, "which --no-code refuses", LISTED.format(folder=folder).strip())
    assert NAME not in sys.modules
    assert sorted(one.name for one in folder.iterdir()) == [f"{NAME}.py", "plan.toml"]


@pytest.mark.parametrize("option", ["--model", "--data"])
def test_init_refuses_the_code_of_an_option(folder: Path, overheard: Command, option: str):
    arguments = ("--simulate", option, f"{NAME}:Net", "--no-code", "--force")
    said = overheard("init", *arguments)
    assert said.code == 2
    assert f"{NAME}:Net is code, which --no-code refuses" in said.err
    assert NAME not in sys.modules


def test_a_plan_without_code_says_nothing_of_it(folder: Path, overheard: Command, plan: Path):
    said = overheard("plan", "check", plan, "--no-code", "--no-estimate")
    assert said.code == 0
    assert "code" not in said.out
    told = overheard("plan", "check", plan, "--no-estimate", "--json")
    assert json.loads(told.out)["code"] == []
