"""`init --flower` from any folder: which network is taken, and why the others are not."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CPU, Command
from tests.planning.conftest import STATED_TASK, ForeignRecording, foreign, simulated

__all__ = ["foreign", "simulated"]

PYPROJECT = """
[tool.flwr.app.components]
serverapp = "{package}.server:app"
clientapp = "{package}.client:app"
[tool.flwr.app.config]
num-server-rounds = 3
"""

TASK = """
from torch import nn, optim
from torch.utils.data import DataLoader
from .parts import WIDTH

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.flat = nn.Flatten()
        self.layers = nn.Sequential(nn.Linear(64, 3), nn.Linear(3, 10))
    def forward(self, x):
        return self.layers(self.flat(x))

class Needy(nn.Module):
    def __init__(self, task, width):
        super().__init__()

class Wide(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(WIDTH, 10))

class Fitting(Wide):
    pass

def train(net, examples):
    steps = optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(2):
        for x, y in DataLoader(examples, batch_size=8, shuffle=True):
            nn.functional.cross_entropy(net(x), y).backward()
            steps.step()
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An app in a folder that is neither the working directory nor on the path."""
    folder, elsewhere = tmp_path / "the app", tmp_path / "elsewhere"
    (folder / "clinic_of_app").mkdir(parents=True)
    elsewhere.mkdir()
    (folder / "pyproject.toml").write_text(PYPROJECT.format(package="clinic_of_app"))
    (folder / "clinic_of_app" / "__init__.py").write_text("")
    (folder / "clinic_of_app" / "parts.py").write_text("WIDTH = 64\n")
    (folder / "clinic_of_app" / "task.py").write_text(TASK)
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield folder
    for name in [one for one in sys.modules if one.startswith("clinic_of_app")]:
        del sys.modules[name]


def test_the_network_is_found_from_any_folder_and_the_others_are_told(
    overheard: Command, foreign: ForeignRecording, app: Path
):
    recording = foreign(task=STATED_TASK)
    said = overheard("init", "--from-recording", recording, "--flower", "../the app")
    assert said.code == 0, said.err
    assert "clinic_of_app.task:Net is not taken: layers.0.weight is missing" in said.out
    assert "clinic_of_app.task:Needy is not taken" in said.out
    assert "missing 1 required positional argument: 'width'" in said.out
    text = Path("plan.toml").read_text()
    assert "clinic_of_app.task:Wide" in text.partition("model = ")[2]
    assert 'knows = ["model", "recipe"]' in text
    assert 'optimizer = "adamw"' in text
    assert "weight_decay = 0.01" in text
    assert "Next: PYTHONPATH='../the app' overheard audit plan.toml" in said.out


def test_the_command_that_is_printed_finds_the_network(
    overheard: Command,
    foreign: ForeignRecording,
    app: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    recording = foreign(task=STATED_TASK)
    assert overheard("init", "--from-recording", recording, "--flower", "../the app").code == 0
    assert str(app) not in sys.path
    monkeypatch.syspath_prepend(app)
    audited = overheard("audit", "plan.toml", "--transcript", recording, *CPU)
    assert audited.code == 0, audited.err


def test_a_package_of_the_same_name_elsewhere_is_not_taken_for_the_app(
    overheard: Command, foreign: ForeignRecording, app: Path, tmp_path: Path
):
    other = tmp_path / "other" / "clinic_of_app"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    (other / "parts.py").write_text("WIDTH = 64\n")
    (other / "task.py").write_text(TASK)
    sys.path.insert(0, str(tmp_path / "other"))
    recording = foreign(task=STATED_TASK)
    said = overheard("init", "--from-recording", recording, "--flower", app)
    assert "another package has this name" in said.err


def test_an_app_in_the_working_directory_needs_no_path(
    overheard: Command, foreign: ForeignRecording, app: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(app)
    said = overheard("init", "--from-recording", foreign(task=STATED_TASK), "--flower", ".")
    assert said.code == 0, said.err
    assert "PYTHONPATH" not in said.out
