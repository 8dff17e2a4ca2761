"""What a transcript holds, told without trusting it."""

import json
import shutil
from pathlib import Path

import pytest

from overheard.archive.layout import manifest_path, messages_path, round_folder
from overheard.audit.run import audit
from overheard.audit.simulate import Resources
from tests.audit.plans import MASKED, TINY, changed
from tests.cli.conftest import Command


def test_tells_what_was_run_and_who_reads_whom(overheard: Command, recording: Path):
    said = overheard("show", recording)
    assert said.code == 0
    assert said.err == ""
    assert "Logistic()" in said.out
    assert "rate=0.1" in said.out
    assert "2, complete" in said.out
    assert "server reads the updates of 3 others one by one." in said.out
    rows = [line.split() for line in said.out.splitlines()]
    # broadcasts, updates, aggregates, distilled sets, missing, sizes in clear, metrics:
    # 3 broadcasts; the server reads 3 clients x 2 rounds, a client its own 2
    assert ["server", "3", "6", "0", "0", "0", "6", "loss"] in rows
    assert ["client/1", "3", "2", "0", "0", "0", "2", "loss"] in rows


def test_behind_secure_aggregation_nobody_reads_single_updates(
    overheard: Command, tmp_path: Path
):
    audit(
        changed(TINY, arms=(MASKED,)), tmp_path / "out",
        resources=Resources(device="cpu", workers=1),
    )  # fmt: skip
    said = overheard("show", tmp_path / "out" / "runs" / "secure_aggregation-seed0")
    assert "Nobody reads another party's single updates." in said.out
    assert "SecureAggregation(), enforced at the protocol" in " ".join(said.out.split())


def test_checks_every_file_when_asked_to(overheard: Command, recording: Path, tmp_path: Path):
    # 3 broadcasts and 6 updates
    assert "9 weight files are whole." in overheard("show", recording, "--verify").out
    copy = shutil.copytree(recording, tmp_path / "copy")
    file = sorted(round_folder(copy / "transcript", 0).glob("*.safetensors"))[0]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    said = overheard("show", copy, "--verify")
    assert said.code == 2
    assert "was altered after it was written" in said.err


def test_an_unfinished_run_is_told_to_be_one(
    overheard: Command, recording: Path, tmp_path: Path
):
    copy = shutil.copytree(recording, tmp_path / "copy")
    messages_path(copy / "transcript", 2).unlink()
    assert "2, INCOMPLETE" in overheard("show", copy).out


def test_a_folder_without_a_transcript(overheard: Command, tmp_path: Path):
    said = overheard("show", tmp_path)
    assert said.code == 2
    assert "name the folder of a run" in " ".join(said.err.split())


@pytest.mark.parametrize(
    "hostile", ["\x1b[2J", "\x1b]0;owned\x07", "\u202eevil", "[red]x[/red]"]
)
def test_nothing_in_a_transcript_can_steer_the_terminal(
    overheard: Command, recording: Path, tmp_path: Path, hostile: str
):
    copy = shutil.copytree(recording, tmp_path / "copy")
    path = manifest_path(copy / "transcript")
    manifest = json.loads(path.read_text())
    manifest["model"] = f"cnn{hostile}"
    manifest["task"]["class_names"][0] = hostile
    path.write_text(json.dumps(manifest))
    said = overheard("show", copy)
    assert said.code == 0
    assert "\x1b" not in said.out
    assert "\x07" not in said.out
    assert "\u202e" not in said.out
    if hostile.startswith("["):
        assert hostile in said.out
