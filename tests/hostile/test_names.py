"""No name in a received folder is imported, and no file that it names is opened."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from overheard.recorders.folder_import import import_recording
from tests.hostile.audit_hook import WatchedCommands

CODE = "received_code:Net"

TASK = {"shape": [64], "class_names": list("abcdefghij"), "vocabulary": None}

TEXTS = {"shape": [8], "class_names": list("abcdefghij"), "vocabulary": 20}

DEFENSE = {
    "name": CODE,
    "settings": f"MmAug(alpha=0.5, modes=3, extractor='{CODE}')",
    "enforced_at": "client",
    "switched_off_by": CODE,
    "mechanism": None,
}

MANIFESTS: Mapping[str, Mapping[str, object]] = {
    "a module of the recording": {"task": TASK, "model": "recording.x:Net"},
    "a module of Python": {"task": TASK, "model": "os:abort"},
    "a plugin that names code": {"task": TASK, "model": f"Own(reference='{CODE}')"},
    "a model that names a pipe": {"task": TEXTS, "model": "Transformer(base='pipe')"},
    "a defense": {"task": TASK, "model": CODE, "defenses": [DEFENSE]},
    "a protocol": {"task": TASK, "model": "mlp", "algorithm": CODE, "protocol": CODE},
}
"""By what names code: the changed fields of the manifest."""


@pytest.fixture(scope="module")
def received(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that somebody sent, which is the working directory, too."""
    folder = tmp_path_factory.mktemp("received")
    weights = {"1.weight": torch.zeros(10, 64), "1.bias": torch.zeros(10)}
    for number in range(2):
        place = folder / "exported" / f"round-{number:04d}"
        place.mkdir(parents=True)
        save_file(weights, place / "global.safetensors")
        if not number:
            save_file(weights, place / "client-0.safetensors")
    import_recording(folder / "exported", folder / "recording")
    for module in ("received_code.py", "recording/x.py", "recording/__init__.py"):
        (folder / module).write_text("class Net: pass\n")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.parametrize("named", MANIFESTS)
@pytest.mark.parametrize("command", ["init", "show"])
def test_what_a_manifest_names_stays_text(
    received: Path, tmp_path: Path, commands: WatchedCommands, named: str, command: str
):
    recording, manifest = received / "recording", "transcript/manifest.json"
    copy = tmp_path / "recording"
    shutil.copytree(recording, copy)
    content = json.loads((copy / manifest).read_text())
    (copy / manifest).write_text(json.dumps(content | MANIFESTS[named]))
    run = commands.run(
        (command, *(["--from-recording"] if command == "init" else []), str(copy)),
        cwd=received,
        may_write=(),
        must_not_open=[received / "pipe"],
    )
    assert run.exit_code in (0, 2), run.stderr
    assert run.events == ()
