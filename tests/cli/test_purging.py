"""`overheard purge`: what it says, asks and returns, and what other commands say afterwards."""

import shutil
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit as run_audit
from overheard.plans.release_plan import ReleasePlan
from overheard.report.write import write_report
from tests.auditing.plans import TINY
from tests.cli.conftest import CPU, Command, assert_user_error, contents

PLAN = TINY.model_copy(
    update={"release": ReleasePlan(retention="messages 30 days, results 3 years")}
)


@pytest.fixture(scope="module")
def reported(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit with its report; copy it before changing it."""
    folder = shutil.copytree(finished, tmp_path_factory.mktemp("reported") / "audit")
    write_report(run_audit(PLAN, folder, resources=Resources(device="cpu", workers=1)), folder)
    return folder


@pytest.fixture
def audited(reported: Path, tmp_path: Path) -> Path:
    """A copy of the folder of an audit with its report."""
    return shutil.copytree(reported, tmp_path / "audits" / "march")


@pytest.fixture
def made_in_2020(audited: Path) -> Path:
    """The same audit, but made on a day of 2020."""
    path = audited / "findings.json"
    lines = path.read_text().splitlines()
    lines = [' "made_on": "2020-02-01",' if '"made_on":' in one else one for one in lines]
    path.write_text("\n".join(lines) + "\n")
    return audited


class Terminal(StringIO):
    """A standard input at which somebody sits."""

    def isatty(self) -> bool:
        return True


def test_says_what_it_removes_and_keeps_and_removes_nothing_in_a_dry_run(
    overheard: Command, audited: Path
):
    before = contents(audited)
    said = overheard("purge", audited, "--dry-run")
    assert (said.code, said.err) == (0, "")
    for word in ("cells", "runs", "are removed", "Kept: digests.json, findings.csv"):
        assert word in said.out
    assert contents(audited) == before


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("y\n", 0)])
def test_asks_at_a_terminal(
    overheard: Command, audited: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
):
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    said = overheard("purge", audited)
    assert said.code == code
    assert "It cannot be undone" in said.out
    assert (audited / "cells").exists() == bool(code)


def test_removes_nothing_where_nobody_can_be_asked(overheard: Command, audited: Path):
    said = overheard("purge", audited)
    assert said.code == 2
    assert "add --yes" in said.err
    assert (audited / "cells").exists()


def test_results_stay_readable_and_nothing_is_resumed(
    overheard: Command, audited: Path, plan: Path
):
    results = {name: (audited / name).read_bytes() for name in ("report.html", "findings.json")}
    assert overheard("purge", audited, "--yes").code == 0
    assert {name: (audited / name).read_bytes() for name in results} == results
    again = overheard("audit", plan, "--out", audited, *CPU, "--quiet")
    assert_user_error(again, "was purged on", "nothing can be resumed", "--out")
    shown = overheard("show", audited / "runs" / "no_defense-seed0")
    assert_user_error(shown, "was purged on", "its results stay readable")
    for command in (
        ("check", audited, "--like", audited),
        ("compare", audited, audited),
        ("evidence", audited),
    ):
        said = overheard(*command)
        assert said.code == 0
        assert "was purged on" in said.err
        assert "was purged" not in overheard(*command, "--quiet").err
    assert overheard("verify", audited).code == 0


def test_only_what_is_past_its_retention_is_removed(overheard: Command, made_in_2020: Path):
    place = made_in_2020.parent
    said = overheard("purge", "--due", place, "--dry-run")
    assert "messages were due on 2020-03-02; results were due on 2023-02-01" in said.out
    new = shutil.copytree(made_in_2020, place / "new")
    path = new / "findings.json"
    path.write_text(path.read_text().replace("2020-02-01", "2999-01-01"))
    assert overheard("purge", "--due", place, "--yes").code == 0
    assert [one.name for one in made_in_2020.iterdir()] == ["purged.json"]
    assert (new / "cells").is_dir()
    assert "Nothing is due." in overheard("purge", "--due", place).out
    note = made_in_2020 / "purged.json"
    note.write_text(note.read_text().replace('"is_complete": true', '"is_complete": false'))
    (made_in_2020 / "evidence").mkdir()
    assert "to be finished" in overheard("purge", "--due", place, "--yes").out
    assert not (made_in_2020 / "evidence").exists()
    assert "Nothing is due." in overheard("purge", "--due", place).out


def test_a_damaged_note_is_said_and_keeps_nothing_else_from_being_removed(
    overheard: Command, made_in_2020: Path
):
    place = made_in_2020.parent
    damaged = [shutil.copytree(made_in_2020, place / name) for name in ("a", "z")]
    for folder in damaged:
        (folder / "purged.json").write_text("{")
    for option, is_left in (("--dry-run", True), ("--yes", False)):
        said = overheard("purge", "--due", place, option)
        assert said.code == 2
        assert all(f"{folder}/purged.json" in "".join(said.err.split()) for folder in damaged)
        assert (made_in_2020 / "cells").is_dir() == is_left
    assert all((folder / "cells").is_dir() for folder in damaged)


def test_a_retention_may_be_given_for_recordings(
    overheard: Command, recording: Path, tmp_path: Path
):
    copy = shutil.copytree(recording, tmp_path / "recordings" / "march")
    said = overheard("purge", "--due", copy.parent)
    assert "it states no retention, so it is kept" in said.out
    said = overheard("purge", "--due", copy.parent, "--retention", "1000 years")
    assert "messages are kept until" in said.out
    assert (copy / "transcript").is_dir()


def test_audit_and_show_say_when_data_are_due(
    overheard: Command, made_in_2020: Path, audited: Path, tmp_path: Path
):
    said = overheard("show", made_in_2020 / "runs" / "no_defense-seed0")
    assert "Remove what is due: overheard purge --due" in said.err
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.toml())
    said = overheard("audit", plan, "--out", audited, *CPU)
    assert "messages are kept until" in said.out
    assert "purge --due" not in said.out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (lambda folder: (), "Name a folder"),
        (lambda folder: (folder, "--retention", "1 day"), "--due"),
        (lambda folder: ("--due", folder, "--retention", "long"), "messages 30 days"),
        (lambda folder: ("--due", folder / "missing"), "no such folder"),
        (lambda folder: (folder.parent,), "nothing is removed"),
    ],
)
def test_refuses_what_cannot_be_meant(
    overheard: Command, audited: Path, arguments: Callable[[Path], tuple[Path | str, ...]],
    word: str,
):  # fmt: skip
    said = overheard("purge", *arguments(audited))
    assert said.code == 2
    assert word in " ".join(said.err.replace("│", " ").split())
