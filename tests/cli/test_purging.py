"""What is kept, given away and removed."""

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from fnmatch import fnmatch
from io import StringIO
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit as run_audit
from overheard.plans.plan import ThreatPlan
from overheard.plans.release_plan import ReleasePlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.report.write import write_report
from tests.auditing.plans import TINY, replace_tables
from tests.cli.conftest import CPU, Command, assert_user_error, contents
from tests.report.release.marks import every_text

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


HOSPITALS = {"client/0": "Zqcharite", "client/1": "Zqinselspital", "client/2": "Zqrikshospital"}


POLICY = '[[verdicts]]\nname = "nothing leaks"\n'


@pytest.fixture(scope="module")
def released(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit of a recording of hospitals, of which one observes."""
    home = tmp_path_factory.mktemp("audits")
    copy = shutil.copytree(recording, home / "Zqrecording")
    for path in (*copy.rglob("*.json"), *copy.rglob("*.jsonl")):
        text = path.read_text()
        for number, name in HOSPITALS.items():
            text = text.replace(f'"{number}"', f'"client/{name}"')
        path.write_text(text)
    attacks = (BiasInversion(),)
    plan = replace_tables(
        TINY,
        threats=(
            ThreatPlan(attacks=attacks),
            ThreatPlan(
                observers=(f"client/{HOSPITALS['client/1']}",),
                attacks=attacks,
                about="cohort",
                by_round=False,
            ),
        ),
    )
    folder = home / "Zqaudit"
    resources = Resources(device="cpu", workers=1)
    write_report(run_audit(plan, folder, recording=copy, resources=resources), folder)
    return folder


def test_no_name_of_a_real_audit_is_in_its_release(
    overheard: Command, released: Path, tmp_path: Path
):
    page = (released / "report.html").read_text().lower()
    assert all(name.lower() in page for name in HOSPITALS.values())
    policy = tmp_path / "Zqpolicies" / "policy.toml"
    policy.parent.mkdir()
    policy.write_text(POLICY)
    out = tmp_path / "out"
    said = overheard(
        "release", released, "--out", out, "--policy", policy, "--least-group", "2"
    )
    assert (said.code, said.err) == (0, "")
    for words in ("Left out:", "names of parties", "Kept as written", "report.html"):
        assert words in said.out
    names = {path.name for path in out.iterdir()}
    assert names == {"report.html", "findings.json", "release.json", "digests.json",
                     "check.sarif", "evidence"}  # fmt: skip
    words = [*map(str.lower, HOSPITALS.values()), "zqrecording", "zqaudit", "zqpolicies"]
    assert [one for _, text in every_text(out) for one in words if one in text] == []
    document = json.loads((out / "findings.json").read_text())
    assert len(document["summary"]) > 0
    assert {tuple(one["observers"]) for one in document["verdicts"]} == {
        ("server",),
        ("client/1",),
    }
    assert overheard("verify", out).code == 0


def test_released_findings_are_a_reference_for_later_releases(
    overheard: Command, released: Path, tmp_path: Path
):
    for name in ("first", "second"):
        assert overheard("release", released, "--out", tmp_path / name, "--least-group", "2",
                         "--quiet").code == 0  # fmt: skip
    said = overheard("check", tmp_path / "second", "--like", tmp_path / "first")
    assert said.code == 0
    assert "Client 1" in said.out or "client/1" in said.out
    said = overheard("compare", tmp_path / "first", tmp_path / "second")
    assert "0 verdicts changed" in " ".join(said.out.split())


def test_three_clients_are_too_few_unless_told(
    overheard: Command, released: Path, tmp_path: Path
):
    assert overheard("release", released, "--out", tmp_path / "out", "--quiet").code == 0
    document = json.loads((tmp_path / "out" / "findings.json").read_text())
    assert document["summary"] == []
    overheard("release", released, "--out", tmp_path / "out", "--with-clients", "--quiet")
    document = json.loads((tmp_path / "out" / "findings.json").read_text())
    assert len(document["findings"]) > 0
    assert "Zq" not in json.dumps(document)


def test_findings_without_an_audit_are_an_error(overheard: Command, tmp_path: Path):
    said = overheard("release", tmp_path, "--out", tmp_path / "out")
    assert said.code == 2
    assert "findings.json" in said.err


def test_a_release_and_its_audit_differ_in_nothing_that_both_hold(
    overheard: Command, released: Path, tmp_path: Path
):
    out = tmp_path / "out"
    assert overheard("release", released, "--out", out, "--least-group", "1").code == 0
    for pair in ((released, out), (out / "findings.json", released / "findings.json")):
        said = overheard("compare", *pair, "--json")
        assert said.code == 0
        found = json.loads(said.out)
        assert found["changes"] == []
        assert found["compared"] > 0
        (note,) = found["notes"]
        assert "is a release" in note
    assert "is a release" not in overheard("compare", out, out).out
    (out / "release.json").write_text('{"least_group": "many"}')
    damaged = overheard("compare", released, out)
    assert damaged.code == 2
    assert "get the whole release again" in damaged.err


PAGE = Path(__file__).parents[2] / "docs" / "what-files-hold.md"


NOT_ALWAYS = {
    "transcript/ended.json", "node_names.json", "run_config.json", "bank/*.safetensors",
    "followed.json", "in-use.json", "purged.json", "check.sarif", "pictures.html",
}  # fmt: skip
"""Files of the page that this audit does not write."""


def table(section: str) -> dict[str, tuple[str, ...]]:
    """Return the other cells of each row of a section, by the patterns of its first cell."""
    text = (
        PAGE.read_text(encoding="utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    )
    rows = re.findall(r"^\| `([^|]+)` \|(.*)\|$", text, re.MULTILINE)
    return {
        name: tuple(cell.strip() for cell in cells.split("|"))
        for names, cells in rows
        for name in names.split("`, `")
    }


def names_below(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def assert_same(written: set[str], patterns: set[str]) -> None:
    """Check that each file has a pattern, and each pattern a file."""
    unnamed = {one for one in written if not any(fnmatch(one, each) for each in patterns)}
    assert unnamed == set()
    unused = {each for each in patterns if not any(fnmatch(one, each) for one in written)}
    assert unused <= NOT_ALWAYS


@pytest.fixture
def with_evidence(overheard: Command, finished: Path, plan: Path, tmp_path: Path) -> Path:
    """The folder of an audit with its evidence."""
    folder = shutil.copytree(finished, tmp_path / "audit")
    assert overheard("audit", plan, "--out", folder, *CPU, "--quiet").code == 0
    assert overheard("evidence", folder, "--quiet").code == 0
    return folder


def test_the_tables_name_every_file_and_what_purge_removes(
    overheard: Command, with_evidence: Path, tmp_path: Path
):
    audit, evidence = table("An audit"), table("The evidence")
    within = {one.removeprefix("evidence/") for one in names_below(with_evidence)
              if one.startswith("evidence/")}  # fmt: skip
    assert_same(within, set(evidence))
    assert_same(
        {one for one in names_below(with_evidence) if "evidence/" not in one}, set(audit)
    )
    recording = table("A recording")
    assert_same(names_below(with_evidence / "runs" / "no_defense-seed0"), set(recording))
    assert overheard("release", with_evidence, "--out", tmp_path / "out", "--quiet").code == 0
    assert_same(names_below(tmp_path / "out"), set(table("A release")))
    before = names_below(with_evidence)
    assert overheard("purge", with_evidence, "--yes", "--quiet").code == 0
    removed = before - names_below(with_evidence)
    for name in before:
        (told,) = [cells[3] for each, cells in audit.items() if fnmatch(name, each)] or ["kept"]
        assert told.startswith("removed") == (name in removed), name
    assert overheard("purge", with_evidence, "--yes", "--quiet", "--results").code == 0
    assert names_below(with_evidence) == {"purged.json"}


def test_the_retention_of_the_page_is_one():
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert ReleasePlan(**tomllib.loads(text)["release"]).retention is not None
