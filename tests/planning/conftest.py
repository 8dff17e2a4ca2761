"""A recording as Flower would leave it: no data of Overheard, and few stated facts."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from overheard.archive.layout import manifest_path, truth_path
from overheard.auditing.inputs import Resources
from overheard.auditing.simulate import simulate
from tests.auditing.plans import TINY

ForeignRecording = Callable[..., Path]


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated run of three clients and two rounds; copy it before changing it."""
    folder = tmp_path_factory.mktemp("planning") / "run"
    simulate(TINY, folder=folder, resources=Resources(device="cpu", workers=1))
    return folder


@pytest.fixture
def foreign(simulated: Path, tmp_path: Path) -> ForeignRecording:
    """Make a recording that states only these fields of the manifest, without ground truth."""

    def make(**stated: object) -> Path:
        folder = tmp_path / "recording"
        shutil.copytree(simulated, folder)
        truth_path(folder).unlink()
        path = manifest_path(folder / "transcript")
        manifest = json.loads(path.read_text())
        unknown = {"data": "", "seed": None, "task": None, "model": "", "recipe": None}
        path.write_text(json.dumps(manifest | unknown | {"framework": "flower"} | stated))
        return folder

    return make


STATED_TASK = {"shape": [1, 8, 8], "class_names": list("0123456789"), "vocabulary": None}
STATED_RECIPE = {"rate": 0.1, "epochs": 1, "batch": 10}
