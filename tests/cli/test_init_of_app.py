"""Plans of Flower apps."""

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from torch import Tensor

from tests.cli.conftest import CPU, Command
from tests.planning.conftest import STATED_TASK, ForeignRecording, foreign, simulated
from tests.readings import networks
from tests.readings.audited import auxiliary
from tests.readings.channels import save, write_truth
from tests.readings.federations import RATE, SavedRun, federations, simulate
from tests.readings.spoils import each_reply, each_tensor

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


def test_the_network_is_found_from_any_folder_and_the_plan_tells_of_the_others(
    overheard: Command, foreign: ForeignRecording, app: Path
):
    recording = foreign(task=STATED_TASK)
    said = overheard("init", "--from-recording", recording, "--flower", "../the app")
    assert said.code == 0, said.err
    # Nothing is to be done about them, as the network was found.
    assert "is not taken" not in said.out
    text = Path("plan.toml").read_text()
    told = " ".join(text.replace("\n#", "").split())
    assert "clinic_of_app.task:Net is not taken: layers.0.weight is missing" in told
    assert "clinic_of_app.task:Needy is not taken" in told
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


PAGE = Path(__file__).parents[2] / "docs" / "other-apps.md"


@dataclass(frozen=True)
class Section:
    """A section of the page: its title and its blocks, with their languages."""

    title: str
    blocks: tuple[tuple[str, str], ...]


def sections() -> Iterator[Section]:
    """Every section with a command."""
    for text in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        blocks = re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)
        yield Section(text.partition("\n")[0], tuple(blocks))


SECTIONS = tuple(sections())


def encode(inputs: Tensor, labels: Tensor) -> Tensor:
    """Return notes whose first word tells the class."""
    draws = torch.Generator().manual_seed(len(labels))
    shape = (len(labels), networks.LENGTH)
    tokens = torch.randint(1, networks.VOCABULARY, shape, generator=draws)
    tokens[:, 0] = 1 + labels
    return tokens


def without(run: SavedRun, beginning: str) -> SavedRun:
    """Return a run in which tensors with this beginning of a name never travel."""

    def kept(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: one for name, one in tensors.items() if not name.startswith(beginning)}

    sent = each_reply(run, lambda start, end, examples: kept(end))
    rounds = tuple(replace(one, start=kept(one.start)) for one in sent.rounds)
    return replace(sent, rounds=rounds, final=kept(run.final))


def exported_runs() -> Mapping[str, SavedRun]:
    """By the name of a folder of the page, the run in it."""
    by_name = {run.name: run for run in federations()}
    weights = by_name["weights"]
    return {
        "adamw": by_name["adamw"],
        "changes": each_tensor(lambda start, end: end - start)(weights),
        "gradients": each_tensor(lambda start, end: (start - end) / RATE)(weights),
        "noisy": by_name["adamw"],
        "lora": by_name["LoRA"],
        "notes": simulate("notes", "Tokens", encode=encode),
        "normed": without(by_name["batch norm"], "1."),
        "models": by_name["adamw"],
    }


@pytest.fixture
def readers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a reader: network, examples and saved runs."""
    notes = next(
        body for one in SECTIONS for language, body in one.blocks if language == "python"
    )
    code = Path(networks.__file__).read_text(encoding="utf-8")
    (tmp_path / "clinic.py").write_text(f"{code}\n\n{notes}", encoding="utf-8")
    auxiliary(tmp_path).rename(tmp_path / "spare.npz")
    with np.load(tmp_path / "spare.npz") as spare:
        bytes_ = np.clip(spare["x"] * 25 + 100, 0, 255).astype(np.uint8)
        np.savez(tmp_path / "bytes.npz", x=bytes_, y=spare["y"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "clinic", raising=False)
    return tmp_path


def provide(name: str, section: Section) -> None:
    """Save the run of a section, with what its about.toml states."""
    folder, run = Path(name), exported_runs()[name]
    for language, body in section.blocks:
        if language == "toml" and "[[defenses]]" in body:
            run = replace(run, about=tomllib.loads(body))
    save(run, folder)
    if name == "models":
        for path in folder.rglob("client-*"):
            path.unlink()
        (folder / "about.toml").unlink()


def complete(plan: Path, body: str) -> None:
    """Write what a block states into the plan, and let attackers know the recipe."""
    content = tomllib.loads(plan.read_text(encoding="utf-8"))
    stated = tomllib.loads(body)["training"]
    content["training"] |= stated
    if "optimizer" in stated:
        for threat in content["threats"]:
            threat["knows"] = ["auxiliary", "model", "recipe"]
            threat["virtual"] = {"clients": 12}
    plan.write_text(tomli_w.dumps(content), encoding="utf-8")


def simulate_few(plan: Path) -> None:
    """Let attackers simulate and train less than `init` proposes, to save time."""
    text = re.sub(r"clients = 250\b", "clients = 12", plan.read_text(encoding="utf-8"))
    plan.write_text(re.sub(r"steps = 100\b", "steps = 20", text), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS, ids=lambda one: one.title)
def test_a_section_leads_to_claims(
    section: Section, readers_folder: Path, overheard: Command
) -> None:
    plan = None
    for language, body in section.blocks:
        if language == "toml" and plan is not None:
            complete(plan, body)
        if language != "sh":
            continue
        for line in body.strip().splitlines():
            _, command, *words = shlex.split(line)
            if command == "init" and not Path(words[2]).exists():
                provide("adamw", section)
                overheard("import", "adamw", "--out", words[2])
            if command == "import":
                provide(words[0], section)
            if command == "init":
                plan = Path(words[0])
            if command == "audit":
                simulate_few(plan or Path(words[0]))
            said = overheard(command, *words, *(CPU if command == "audit" else ()))
            assert said.code == 0, said
            if command == "import" and words[0] != "models":
                write_truth(exported_runs()[words[0]], Path(words[-1]))
            if command == "audit":
                report = Path(words[-1], "findings.json").read_text(encoding="utf-8")
                assert '"target"' in report
    if section.title.startswith("Inputs on another scale"):
        assert plan is not None
        assert "by_255" in plan.read_text(encoding="utf-8") or "standardised" in said.out
