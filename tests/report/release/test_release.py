"""A release holds no names and no figures of single clients, and says what it leaves out."""

import getpass
import json
import os
import socket
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from overheard.core.algorithm.deduced_view import UNKNOWN_COHORTS
from overheard.core.errors import FindingsError, OutputError
from overheard.findings.document import FindingsDocument, read_findings
from overheard.report.evidence.digests import check_folder, write_digests
from overheard.report.release.left_out import ReleaseSettings
from overheard.report.release.released_findings import ReleasedFindings, release_findings
from overheard.report.release.safe_texts import OTHER_NEED
from overheard.report.release.write import WrittenRelease, write_release
from tests.gate.documents import (
    JsonObject,
    document,
    refusal,
    run,
    summary_row,
    verdict_row,
    write_document,
)
from tests.report.release.marks import SHARES, Marks, every_text, marked_findings

TODAY = date(2026, 11, 27)

DEFAULT = ReleaseSettings()


def released(
    folder: Path, content: JsonObject, settings: ReleaseSettings = DEFAULT
) -> tuple[WrittenRelease, FindingsDocument]:
    """Write findings and their release, and read the released findings."""
    folder.mkdir()
    write_document(folder, content)
    write_digests(folder, ("findings.json",))
    written = write_release(folder, folder / "out", settings, TODAY)
    return written, read_findings(folder / "out" / "findings.json")


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Marks, Path]:
    """Findings with a mark in each place, and their release in `out`."""
    marks = Marks()
    folder = tmp_path_factory.mktemp("audits") / marks.at("folder of the audit")
    (folder / "evidence").mkdir(parents=True)
    write_document(folder, marked_findings(marks))
    (folder / "evidence" / "officer.toml").write_text(
        f'# {marks.at("comment of the officer")}\ndecision = "Accepted by the board."\n'
    )
    write_digests(folder, ("findings.json",))
    out = tmp_path_factory.mktemp("released") / "out"
    write_release(folder, out, DEFAULT, TODAY)
    return marks, out


def test_no_mark_of_any_place_is_in_any_byte_of_a_release(marked: tuple[Marks, Path]):
    marks, out = marked
    texts = list(every_text(out))
    assert {name for name, _ in texts} >= {"report.html", "findings.json", "annex.pdf"}
    found = {
        (place, name)
        for place, mark in marks.places.items()
        for name, text in texts
        if mark.lower() in text
    }
    assert found == set()
    assert len(marks.places) >= 70


def test_the_search_finds_marks_where_they_are(marked: tuple[Marks, Path], tmp_path: Path):
    marks = Marks()
    write_document(tmp_path, marked_findings(marks))
    text = "".join(text for _, text in every_text(tmp_path))
    assert all(mark.lower() in text for mark in marks.places.values())
    pdf = dict(every_text(marked[1] / "evidence"))["annex.pdf"]
    assert "accepted by the board." in pdf
    assert "nine hospitals" in pdf


def test_no_figure_of_a_client_and_nothing_of_the_machine_is_in_a_release(
    marked: tuple[Marks, Path], tmp_path: Path
):
    _, out = marked
    words = [f"{one:.6g}" for one in SHARES] + [f"{100 * one:.3g}" for one in SHARES]
    words += [str(out.parent).lower(), str(Path.home()).lower()]
    words += [one.lower() for one in (socket.gethostname(), getpass.getuser()) if len(one) > 4]
    for name, text in every_text(out):
        if name.endswith((".json", ".html")) and name != "ro-crate-metadata.json":
            assert [one for one in words if one in text] == [], name


def test_a_release_can_be_verified_and_says_what_it_leaves_out(marked: tuple[Marks, Path]):
    _, out = marked
    for folder in (out, out / "evidence"):
        checked = check_folder(folder)
        assert {one.state for one in checked.files} == {"as written"}
    content = json.loads((out / "release.json").read_text())
    assert content["least_group"] == 5
    assert {one["what"] for one in content["left_out"]} >= {"names of parties"}
    page = (out / "report.html").read_text()
    assert "Not on this page" not in page
    for one in content["left_out"]:
        assert f"{one['why']}." in page.replace("&#39;", "'")


@pytest.mark.skipif(os.name != "posix", reason="no permissions of files")
def test_files_of_a_release_have_the_permissions_of_the_umask(marked: tuple[Marks, Path]):
    umask = os.umask(0)
    os.umask(umask)
    _, out = marked
    modes = {path: path.stat().st_mode & 0o777 for path in (out, *out.rglob("*"))}
    wrong = {path for path, mode in modes.items() if mode != allowed(path) & ~umask}
    assert wrong == set()


def allowed(path: Path) -> int:
    return 0o777 if path.is_dir() else 0o666


def test_the_same_audit_gives_the_same_bytes_again(marked: tuple[Marks, Path]):
    marks, out = marked
    first = {path: path.read_bytes() for path in out.rglob("*.*") if path.is_file()}
    # Other tests of this process may have numbered the folder of audits.
    (folder,) = out.parent.parent.glob(f"audits[0-9]*/{marks.places['folder of the audit']}")
    write_release(folder, out, DEFAULT, TODAY)
    assert {path: path.read_bytes() for path in out.rglob("*.*") if path.is_file()} == first


COHORT = {"about": "cohort", "observers": ["client/0"]}


def keep(content: JsonObject, settings: ReleaseSettings = DEFAULT) -> ReleasedFindings:
    """Return the released findings alone."""
    found = FindingsDocument.model_validate_json(json.dumps(content))
    return release_findings(found, found.findings, settings)


@pytest.mark.parametrize(
    ("clients", "row", "is_kept"),
    [
        (5, {"targets": 5}, True),
        (9, {"targets": 4}, False),
        (4, {"targets": 9}, False),  # targets may be pseudonyms
        (0, {"targets": 5}, True),  # written before runs had a number of clients
        (6, {"targets": 1, **COHORT}, True),
        (5, {"targets": 1, **COHORT}, False),  # without the observer there are four
        (0, {"targets": 1, **COHORT}, False),
    ],
)
def test_figures_on_fewer_than_five_clients_are_left_out(
    clients: int, row: JsonObject, is_kept: bool
):
    place = {key: row[key] for key in ("about", "observers") if key in row}
    content = document(
        summary_row(0.123456, 0.234567, **row),
        arms=[run(clients=clients)],
        verdicts=[verdict_row(**place, sentence="It reads 0.123456.")],
    )
    kept = keep(content)
    assert len(kept.document.summary) == is_kept
    (verdict,) = kept.document.verdicts
    assert verdict.verdict == ("leaks" if is_kept else "not enough to judge")
    assert ("0.123456" in kept.document.to_json()) == is_kept
    told = [one.what for one in kept.left_out if "(leaks)" in one.what]
    assert len(told) == (not is_kept)


def test_the_page_keeps_the_place_of_figures_that_are_left_out(tmp_path: Path):
    content = document(summary_row(), arms=[run(clients=4)], verdicts=[verdict_row()])
    written, found = released(tmp_path / "audit", content)
    page = (written.folder / "report.html").read_text()
    assert "Not judged: figures on fewer than 5 clients are left out." in page
    assert "It must not be said that nothing leaks" in page
    assert "This is not told here" in found.verdicts[0].sentence


def test_rounds_in_which_few_clients_sent_are_left_out_alone():
    content = document(
        summary_row(targets=9),
        summary_row(targets=2, rounds=[0]),
        arms=[run(clients=9)],
        verdicts=[verdict_row()],
    )
    found = keep(content).document
    assert [row.rounds for row in found.summary] == [(0, 1)]
    assert found.verdicts[0].verdict == "leaks"


def test_pseudonyms_of_a_round_count_as_their_clients():
    plan = '[[threats]]\nobservers = ["server"]\npseudonyms = "round"\n'
    content = document(summary_row(targets=40), plan=plan, verdicts=[verdict_row()])
    assert keep(content).document.summary == ()


def test_names_and_claims_stay_if_they_are_asked_for():
    marks = Marks()
    content = marked_findings(marks)
    found = keep(content, replace(DEFAULT, with_names=True)).document
    assert f"client/{marks.places['observer']}" in found.verdicts[1].observers
    assert found.findings == ()
    found = keep(content, replace(DEFAULT, with_clients=True, least_group=1)).document
    (row,) = found.findings
    assert (row.claimed, row.true, row.target) == ((SHARES[0],), (SHARES[1],), "client/2")
    text = found.to_json()
    assert [mark for mark in marks.places.values() if mark in text] == []


def test_observers_are_numbered_in_the_order_of_the_plan(tmp_path: Path):
    threats = [f'[[threats]]\nobservers = ["client/{one}"]\n' for one in ("zurich", "bern")]
    rows = [summary_row(targets=9, observers=[f"client/{one}"]) for one in ("bern", "zurich")]
    content = document(
        *rows,
        title="What Bern reveals",
        plan="".join(threats),
        verdicts=[verdict_row(observers=row["observers"]) for row in rows],
        is_recorded=True,
        arms=[run(clients=9)],
        refusals=[refusal(target="client/member")],
    )
    written, found = released(tmp_path / "audit", content)
    assert [row.observers for row in found.summary] == [("client/2",), ("client/1",)]
    assert found.verdicts[0].sentence.startswith("Client 2 identifies")
    # The title is the owner's; “member” is only a part of words.
    assert written.remaining_names == ("bern",)


def test_pseudonyms_of_a_simulation_are_no_names(tmp_path: Path):
    content = document(refusals=[refusal(target="anon/0-1")], is_recorded=False)
    written, found = released(tmp_path / "audit", content)
    assert found.refusals[0].target == "anon/0-1"
    assert written.remaining_names == ()


def test_a_release_says_why_observers_of_broadcasts_were_refused(tmp_path: Path):
    missing = [UNKNOWN_COHORTS, "the address of client/7"]
    _, found = released(tmp_path / "audit", document(refusals=[refusal(missing=missing)]))
    assert found.refusals[0].missing == (UNKNOWN_COHORTS, OTHER_NEED)


def test_refuses_changed_findings_and_folders_of_others(tmp_path: Path):
    write_document(tmp_path, document())
    with pytest.raises(OutputError, match=r"digests\.json: there is no such file"):
        write_release(tmp_path, tmp_path / "out", DEFAULT, TODAY)
    (tmp_path / "plan.toml").write_text("seeds = [0]\n")
    write_digests(tmp_path, ("findings.json", "plan.toml"))
    with pytest.raises(OutputError, match="is the folder of the audit"):
        write_release(tmp_path, tmp_path, DEFAULT, TODAY)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OutputError, match="symbolic links"):
        write_release(tmp_path, tmp_path / "loop", DEFAULT, TODAY)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="nor a release"):
        write_release(tmp_path, tmp_path / "other", DEFAULT, TODAY)
    (tmp_path / "plan.toml").write_text("seeds = [1]\n")
    with pytest.raises(FindingsError, match=r"plan\.toml: was changed"):
        write_release(tmp_path, tmp_path / "out", DEFAULT, TODAY)
    (tmp_path / "plan.toml").write_text("seeds = [0]\n")
    write_document(tmp_path, document(title="Another"))
    with pytest.raises(FindingsError, match="was changed"):
        write_release(tmp_path, tmp_path / "out", DEFAULT, TODAY)
    assert not (tmp_path / "out").exists()
