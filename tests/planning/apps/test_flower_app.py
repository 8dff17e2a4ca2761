"""A Flower app is read and never run."""

from pathlib import Path

import pytest

from overheard.core.errors import PlanError
from overheard.planning.apps.flower_app import read_flower_app
from overheard.planning.training_facts import read_training_facts

PYPROJECT = """
[tool.flwr.app.components]
serverapp = "mine.server_app:app"
[tool.flwr.app.config]
num-server-rounds = 3
lr = 0.05
local-epochs = 2
batch-size = true
"""

TASK = """
raise SystemExit("was run")
from torch import nn
class Net(nn.Module): ...
class Config: ...
class Other(Module): ...
class Late(Derived): ...
class Derived(Net): ...
class Row(nn.Sequential): ...
"""


def test_finds_networks_and_settings_without_running_the_app(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "task.py").write_text(TASK)
    (tmp_path / "mine" / "broken.py").write_text("class (")
    app = read_flower_app(tmp_path)
    assert app.networks == tuple(
        f"mine.task:{name}" for name in ("Net", "Other", "Late", "Derived", "Row")
    )
    assert app.rounds == 3
    found = read_training_facts(None, app).settings
    assert {key: one.value for key, one in found.items()} == {"rate": 0.05, "epochs": 2}


@pytest.mark.parametrize("content", ["", "tool = 3", "[tool.flwr.app.components]"])
def test_refuses_a_folder_without_an_app(tmp_path: Path, content: str):
    (tmp_path / "pyproject.toml").write_text(content)
    with pytest.raises(PlanError, match=r"is no pyproject\.toml of a Flower app"):
        read_flower_app(tmp_path)


def test_refuses_a_folder_in_place_of_a_source_file(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "mine" / "task.py").mkdir(parents=True)
    with pytest.raises(PlanError, match=r"task\.py cannot be read"):
        read_flower_app(tmp_path)


def test_refuses_an_app_with_too_much_code_to_parse(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "mine").mkdir()
    for number in range(6):
        (tmp_path / "mine" / f"part{number}.py").write_text("#" * 100_000)
    with pytest.raises(PlanError, match=r"the source code takes .* --max-unpacked 5GB"):
        read_flower_app(tmp_path)


BUILDERS = """
from torch import nn
def get_model(run_config): return nn.Linear(int(run_config["width"]), 2)
def build_net(width, dropout=0.1): ...
def load_base():
    return AutoModel.from_pretrained("base")
def get_tokenizer(): return AutoTokenizer.from_pretrained("base")
def encode(text): ...
def test(model, loader): ...
class Net:
    def get_model(self): ...
def small(): return nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
"""


def test_finds_functions_that_build_networks_with_what_they_take(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(PYPROJECT + "width = 8\nlora.rank = 4\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "task.py").write_text(BUILDERS)
    app = read_flower_app(tmp_path)
    assert app.networks == tuple(
        f"mine.task:{name}" for name in ("get_model", "build_net", "load_base", "small")
    )
    whole, single, alone, _ = (model.arguments for model in app.models())
    assert dict(whole or ())["lora.rank"] == 4
    assert single == (("width", 8),)
    assert alone is None
    assert app.encoders == ("mine.task:get_tokenizer", "mine.task:encode")
