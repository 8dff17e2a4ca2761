"""The commands of examples/huggingface lead to scored claims; the app runs in one process."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from overheard.archive.reader import open_transcript
from overheard.core.messages import Update

pytestmark = [
    pytest.mark.deployment,
    pytest.mark.skipif(not find_spec("flwr"), reason="the extra flower is not installed"),
    pytest.mark.skipif(not find_spec("peft"), reason="peft is not installed"),
]

ROOT = Path(__file__).parents[2]
CLIENTS = 5


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder, and return what it prints."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {
        "PYTHONPATH": path,
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        (sys.executable, *arguments),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Return a copy of the example that records one round."""
    folder = tmp_path / "app"
    shutil.copytree(
        ROOT / "examples" / "huggingface", folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    settings = folder / "pyproject.toml"
    text = settings.read_text()
    for default, wanted in (
        ('recording = ""', 'recording = "recording"'),
        ("rounds = 5", "rounds = 1"),
    ):
        assert default in text
        text = text.replace(default, wanted)
    settings.write_text(text)
    return folder


def test_the_commands_of_the_example_lead_to_scored_claims(app: Path) -> None:
    simulate = "from pathlib import Path; from tests.apps.simulate import simulate; "
    run(app, "-c", simulate + f"simulate(Path({str(app)!r}))")  # runs spare.py too
    run(app, "truth.py", "recording")

    updates = [
        one.body
        for one in open_transcript(app / "recording").messages
        if isinstance(one.body, Update)
    ]
    assert len(updates) == CLIENTS
    for update in updates:
        assert all("lora_" in name or ".classifier." in name for name in update.delta)

    overheard = ("-m", "overheard")
    said = run(
        app,
        *(
            *overheard,
            "init",
            "--from-recording",
            "recording",
            "--flower",
            ".",
            "--data",
            "spare",
        ),
    )
    assert "Inputs: texts of 24 tokens" in said
    assert "Classes: World" in said
    run(app, *overheard, "audit", "plan.toml", "--transcript", "recording", "--out", "audit")

    found = json.loads((app / "audit" / "findings.json").read_text())
    assert not found["refusals"]
    claims = [one for one in found["findings"] if not one["is_control"]]
    assert len({one["target"] for one in claims}) == CLIENTS
    assert all(one["is_checked"] and one["scores"] for one in claims)
    assert {one["question"] for one in found["verdicts"]} == {"label_shares"}
