"""Texts and names of others reach no report or terminal as they are."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from overheard.archive.layout import manifest_path, messages_path, truth_path
from overheard.archive.reader import verify_transcript
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.errors import AuditError
from overheard.recorders.folder_import import import_recording
from overheard.report.show import show
from overheard.report.write import write_report
from tests.auditing.plans import TINY

pytestmark = pytest.mark.slow

HERE = Resources(device="cpu", workers=1)

CONTROL = "\x1b]0;owned\x07\x1b[2J\u202e\x00"
MARKUP = "[red]x[/red][/]<script>alert(1)</script>"


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


ODD_NAMES = (
    CONTROL[:-1], MARKUP.replace("/", "|"), "..x", "-", "ä", "server", "client-0", "a b", "{0}",
    "%s", "x" * 120, "client-", "shadow", "GLOBAL", "~", "$(touch owned)",
)  # fmt: skip


@pytest.mark.parametrize(
    "odd",
    [
        *(f"round-0000/{name}.safetensors" for name in ODD_NAMES),
        *(f"{name}/global.safetensors" for name in ODD_NAMES),
        *ODD_NAMES,
        *(f"round-{number}/global.npz" for number in ("2", "9", "999999999", "0", "-1", "1e3")),
        *(f"round-0000/c{suffix}" for suffix in (".pkl", ".bin", ".txt", "", ".NPZ")),
    ],
)
def test_odd_names_in_an_export_are_read_or_refused(tmp_path: Path, odd: str):
    exported, out = tmp_path / "exported", tmp_path / "out"
    tensors = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
    names = ["round-0000/global.safetensors", "round-0001/global.safetensors", odd]
    for name in names:
        (exported / name).parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, exported / name)
    refused = ""
    try:
        import_recording(exported, out)
        verify_transcript(out)
        shown = str(show(out))
    except AuditError as error:
        refused, shown = str(error), ""
    assert refused.isprintable()
    assert not refused or str(exported) in refused
    assert shown.replace("\n", "").isprintable()
    found = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path for path in found if out / "transcript" not in path.parents} == {
        exported / name for name in names
    }
