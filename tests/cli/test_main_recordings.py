"""The command on intact and damaged recordings."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from overheard.archive.layout import round_folder
from overheard.disk.digests import TRUST_VARIABLE
from tests.cli.conftest import CPU, Command, CommandResult, assert_user_error, contents


def test_audits_a_recorded_run(overheard: Command, plan: Path, recording: Path, tmp_path: Path):
    before = contents(recording)
    said = overheard("audit", plan, "--transcript", recording, "--out", tmp_path / "out", *CPU)
    assert said.code == 0
    assert (tmp_path / "out" / "report.html").exists()
    assert contents(recording) == before


def a_weights_file(folder: Path, kind: str = "update") -> Path:
    return sorted(round_folder(folder / "transcript", 0).glob(f"*-{kind}.safetensors"))[0]


def with_a_flipped_bit(folder: Path) -> None:
    path = a_weights_file(folder)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_an_audit_that_trusts_its_store_says_so(
    overheard: Command,
    plan: Path,
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv(TRUST_VARIABLE, "")  # the option sets it, which must end with this test
    copy = shutil.copytree(recording, tmp_path / "recording")
    with_a_flipped_bit(copy)
    out = tmp_path / "out"
    said = overheard("audit", plan, "--transcript", copy, "--out", out, "--trust-store", *CPU)
    assert said.code == 0
    assert "were not compared with their SHA-256 (--trust-store)" in " ".join(said.out.split())
    subject = json.loads((out / "findings.json").read_text())["subject"]
    assert subject.endswith("; not compared with its SHA-256")


def test_refuses_a_missing_recording(overheard: Command, plan: Path, tmp_path: Path):
    said = overheard("audit", plan, "--transcript", tmp_path / "nowhere")
    assert_user_error(
        said, str(tmp_path / "nowhere"), "name the folder that contains transcript/"
    )
    said = overheard("audit", plan, "--transcript", tmp_path, "--out", tmp_path / "out")
    assert_user_error(said, str(tmp_path), "name the folder of a run")


@pytest.mark.slow
def test_the_command_exits_with_a_code_and_no_traceback(recording: Path, tmp_path: Path):
    copy = shutil.copytree(recording, tmp_path / "recording")
    path = a_weights_file(copy)
    path.write_bytes(b"\xff" * path.stat().st_size)
    done = subprocess.run(
        [sys.executable, "-m", "overheard", "show", str(copy), "--verify"],
        capture_output=True,
        text=True,
        check=False,
    )
    said = CommandResult(done.returncode, "", done.stderr)
    assert_user_error(
        said, str(path), "was altered after it was written", "copy the whole transcript again"
    )


def test_writes_canaries_for_each_client(overheard: Command, plan: Path, tmp_path: Path):
    asked = '[data]\ncandidates = { members = 20, outsiders = 40, canaries = "labelled" }\n'
    plan.write_text(plan.read_text().replace("[data]\n", asked))
    said = overheard("canaries", plan, "--out", tmp_path / "canaries")
    assert (said.code, said.err) == (0, "")
    assert "client/2: " in said.out
    assert f"{tmp_path / 'canaries' / 'client-2.npz'}" in said.out
    assert f"Ground truth: {tmp_path / 'canaries' / 'truth.json'}" in said.out
    names = {path.name for path in (tmp_path / "canaries").iterdir()}
    assert names == {"plan.toml", "truth.json", *(f"client-{n}.npz" for n in range(3))}
    quiet = overheard("canaries", plan, "--out", tmp_path / "canaries", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_says_how_to_add_canaries_to_a_plan(overheard: Command, plan: Path, tmp_path: Path):
    said = overheard("canaries", plan, "--out", tmp_path / "canaries")
    assert_user_error(said, "the plan has no canaries", "[data.candidates]")


def test_refuses_to_simulate_a_plan_for_recordings(
    overheard: Command, plan: Path, recording: Path, tmp_path: Path
):
    told = json.loads((recording / "transcript" / "manifest.json").read_text())
    copy = shutil.copytree(recording, tmp_path / "elsewhere")
    (copy / "transcript" / "manifest.json").write_text(json.dumps(told | {"data": ""}))
    lines = plan.read_text().splitlines()
    start = lines.index("[data.split]")
    end = next(n for n in range(start + 1, len(lines)) if lines[n].startswith("["))
    kept = [*lines[:start], *lines[end:]]
    a, b = kept.index("examples = ["), kept.index("clients = 3")
    kept = [line for n, line in enumerate(kept) if not a <= n <= a + 3 and n != b]
    plan.write_text("\n".join(kept))
    said = overheard("audit", plan, "--out", tmp_path / "out", *CPU)
    assert_user_error(said, "no clients to simulate and is for recordings only", "--transcript")
    heard = overheard(
        "audit", plan, "--transcript", copy, "--out", tmp_path / "heard", *CPU, "--quiet"
    )
    assert (heard.code, heard.err) == (0, "")


def test_shows_a_run_as_json(overheard: Command, recording: Path):
    told = json.loads(overheard("show", recording, "--json", "--verify").out)
    # Two rounds of a broadcast and three updates, and the final broadcast.
    assert told["intact_weight_files"] == 9
    assert told["total"]["counts"]
