"""Comparing audits, also those with little in them."""

import io
import json
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
from rich.console import Console

from overheard.archive.layout import truth_path
from overheard.cli.audit_and_report import (
    print_missing_verdicts,
    refuse_empty_audit,
    unmeasured_attacks,
)
from overheard.consistency.proof import Reason, RecordingProof
from overheard.core.errors import PlanError
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.audited_recording import AuditedRecording
from overheard.findings.finding import Cell, ClaimRow, Finding, Refusal
from overheard.plans.built_in import built_in_plan
from overheard.plans.plan import parse_plan
from overheard.plans.planned_verdicts import NO_TRUTH
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


CELL = Cell("no defense", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0,), label="decaf")


EMPTY = Audit("t", "s", ("a",), (), (), (), "", {})


def refusal(cell: Cell, *missing: str) -> Refusal:
    return Refusal(cell, client(0), missing)


def test_says_that_no_client_is_left_to_ask_about():
    with pytest.raises(PlanError, match=r"no client is left to ask about.*threats\.observers"):
        refuse_empty_audit(EMPTY)


def test_says_that_a_recording_has_no_updates():
    proof = RecordingProof("cannot tell", Reason.NO_UPDATES)
    found = replace(EMPTY, recording=AuditedRecording(proof))
    with pytest.raises(PlanError, match=r"no update of a client.*init --from-recording"):
        refuse_empty_audit(found)


def test_lists_what_each_attack_lacked_once_without_controls():
    others = [replace(CELL, attack=f"a{n}", label=f"a\x1b{n}") for n in range(6)]
    found = replace(
        EMPTY,
        refusals=(
            refusal(CELL, "the recipe", "updates"),
            refusal(replace(CELL, seed=1), "the recipe", "updates"),
            refusal(replace(CELL, is_control=True), "a control"),
            *(refusal(other, "updates") for other in others),
        ),
    )
    with pytest.raises(PlanError) as caught:
        refuse_empty_audit(found)
    first, *reasons, last = str(caught.value).split("\n")
    assert first == "nothing was measured: no attack could be asked. What was missing:"
    assert reasons[0] == "  decaf: the recipe; updates"
    assert reasons[1] == "  a\\x1b0: updates"
    assert reasons[-1] == "  and 2 more"
    assert len(reasons) == 6
    assert "`overheard list attacks`" in last


def test_lists_the_attacks_that_made_no_claim_in_any_arm():
    finding = Finding(replace(CELL, arm="noise"), (client(0),), ClaimRow((1.0,)), ClaimRow())
    other = replace(CELL, attack="mine", label="mine")
    refusals = (refusal(CELL, "updates"), refusal(other, "an attack without errors: mine"))
    found = replace(EMPTY, findings=(finding,), refusals=refusals)
    assert unmeasured_attacks(found) == ("Not measured: mine: an attack without errors: mine",)


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
