"""Reading any recording succeeds or ends in one error with a remedy."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from overheard.archive.layout import manifest_path, messages_path, truth_path
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.errors import AuditError
from overheard.report.write import write_report
from tests.archive.hostile import CONTROL, MARKUP, CaseResults
from tests.auditing.plans import TINY

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HERE = Resources(device="cpu", workers=1)


@pytest.fixture(scope="module")
def results_by_kind(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CaseResults]:
    """Return the results of each kind of case, with a memory limit of 1 GiB for all."""
    home = tmp_path_factory.mktemp("hostile")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.archive.hostile_all", str(home)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return TypeAdapter(dict[str, CaseResults]).validate_json(done.stdout)


@pytest.mark.nightly
def test_damaged_recordings_are_read_or_refused(results_by_kind: dict[str, CaseResults]):
    results = results_by_kind["recordings"]
    assert results.problems == []
    assert results.count == 1_982
    # Nearly all changes are detected; the others give another valid recording.
    assert results.refused > 0.9 * results.count


@pytest.mark.nightly
def test_only_regular_files_in_the_folder_are_opened(results_by_kind: dict[str, CaseResults]):
    results = results_by_kind["tricks"]
    assert results.problems == []
    # 7 tricks with each of 10 files, and two folders that link outside; two are allowed.
    assert (results.count, results.refused) == (72, 70)


@pytest.mark.nightly
def test_damaged_imports_are_read_or_refused(
    results_by_kind: dict[str, CaseResults],
):
    results = results_by_kind["imports"]
    assert results.problems == []
    assert results.count == 783
    assert results.refused > 0.9 * results.count


@pytest.mark.nightly
def test_damaged_truths_are_audited_or_refused(
    results_by_kind: dict[str, CaseResults],
):
    results = results_by_kind["canaries"]
    assert results.problems == []
    assert results.count == 165
    # Not refused: the intact truth, and changes that give another valid truth.
    assert results.refused == 159


@pytest.mark.nightly
def test_there_are_thousands_of_cases(results_by_kind: dict[str, CaseResults]):
    # 1982 + 72 + 783 + 165
    assert sum(results.count for results in results_by_kind.values()) == 3_002


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    audit(TINY, folder, resources=HERE)
    return folder / "runs" / "no_defense-seed0"


def write_everywhere(folder: Path, text: str) -> None:
    """Write this text to every text field of a recording."""
    path = manifest_path(folder / "transcript")
    manifest = json.loads(path.read_text()) | {
        "model": text, "framework": text, "left_out": [text], "protocol": text, "data": "",
        "overheard": text, "torch": text, "python": text,
        "defenses": [
            {"name": text, "settings": text, "enforced_at": "client", "switched_off_by": text}
        ],
    }  # fmt: skip
    path.write_text(json.dumps(manifest))
    for number in (0, 1):
        path = messages_path(folder / "transcript", number)
        lines = [json.loads(raw) for raw in path.read_text().splitlines()]
        for body in (line["body"] for line in lines):
            if body["kind"] == "broadcast":
                body["config"] = {text: text}
            if body["kind"] == "update":
                body["metrics"] = {text: 0.5}
        path.write_text("\n".join(map(json.dumps, lines)))
    path = truth_path(folder)
    truth = json.loads(path.read_text())
    truth["users"] = {f"client/{number}": f"{number} {text}" for number in range(3)}
    truth["attributes"] = {text: {f"{number} {text}": text for number in range(3)}}
    path.write_text(json.dumps(truth))


def test_markup_in_a_recording_is_escaped_in_its_report(recording: Path, tmp_path: Path):
    copy = shutil.copytree(recording, tmp_path / "copy")
    write_everywhere(copy, MARKUP)
    write_report(
        audit(TINY, tmp_path / "out", recording=copy, resources=HERE), tmp_path / "out"
    )
    page = (tmp_path / "out" / "report.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "out"]


@pytest.mark.parametrize("place", ["manifest.json", "rounds", "truth.json"])
def test_control_characters_reach_no_report(recording: Path, tmp_path: Path, place: str):
    copy = shutil.copytree(recording, tmp_path / "copy")
    write_everywhere(copy, CONTROL)
    for name in {"manifest.json", "rounds", "truth.json"} - {place}:
        there = "" if name == "truth.json" else "transcript"
        intact, damaged = recording / there / name, copy / there / name
        shutil.copytree(
            intact, damaged, dirs_exist_ok=True
        ) if intact.is_dir() else shutil.copy(intact, damaged)
    refused = ""
    try:
        found = audit(TINY, tmp_path / "out", recording=copy, resources=HERE)
        write_report(found, tmp_path / "out")
    except AuditError as error:
        refused = str(error)
    assert refused.isprintable()
    assert not refused or str(copy) in refused
    for path in (tmp_path / "out").glob("*.*"):
        assert not set(path.read_text()).intersection("\x00\x07\x1b\u202e"), path
