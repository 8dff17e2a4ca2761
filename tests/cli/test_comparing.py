"""`overheard compare`: its tables, files and exit codes."""

import json
from pathlib import Path

from tests.cli.conftest import Command, assert_user_error
from tests.gate.documents import document, run, summary_row, verdict_row, write_document


def audits(tmp_path: Path, name: str = "bare") -> tuple[Path, Path]:
    folder = tmp_path / "february"
    folder.mkdir()
    leaks = verdict_row(arm=name, score="membership_auc")
    unclear = verdict_row("inconclusive", 0.5, arm=name, score="membership_auc")
    before = document(summary_row(0.6, 0.7, arm=name), verdicts=[leaks], arms=[run(name)])
    after = document(summary_row(0.8, 0.9, arm=name), verdicts=[unclear], arms=[run(name)])
    write_document(folder, before)
    return folder, write_document(tmp_path, after, "march.json")


def test_shows_changes_of_a_folder_and_a_file(overheard: Command, tmp_path: Path):
    said = overheard("compare", *audits(tmp_path))
    assert (said.code, said.err) == (0, "")
    flat = " ".join(said.out.split())
    assert "leaks inconclusive" in flat
    assert "1 verdict changed, 1 score beyond the intervals" in flat


def test_writes_markdown_and_prints_json(overheard: Command, tmp_path: Path):
    before, after = audits(tmp_path)
    page = tmp_path / "changes.md"
    said = overheard("compare", before, after, "--json", "--markdown", page)
    assert [one["kind"] for one in json.loads(said.out)["changes"]] == ["verdict", "score"]
    assert page.read_text().startswith("## Overheard: 1 verdict changed")
    quiet = overheard("compare", before, after, "--quiet")
    assert (quiet.code, quiet.out) == (0, "")


def test_equal_audits_have_no_table(overheard: Command, tmp_path: Path):
    _, after = audits(tmp_path)
    said = overheard("compare", after, after)
    assert said.code == 0
    assert " ".join(said.out.split()) == (
        "0 verdicts changed, 0 scores beyond the intervals, 0 settings of the plan changed; "
        "both audits have 2 verdicts and scores"
    )


def test_escapes_hostile_names_on_the_terminal(overheard: Command, tmp_path: Path):
    said = overheard("compare", *audits(tmp_path, "\x1b]0;owned\x07[red]"))
    assert said.code == 0
    assert "\x1b]" not in said.out
    assert "[red]" in "".join(said.out.split())


def test_refuses_what_are_no_findings(overheard: Command, tmp_path: Path):
    before, after = audits(tmp_path)
    assert_user_error(overheard("compare", before, tmp_path), "cannot be read")
    written = overheard("compare", before, after, "--markdown", after)
    assert_user_error(written, "given twice")
