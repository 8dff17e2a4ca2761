"""Canaries for the clients of a Flower app, drawn without a plan."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard.core.parties import client
from overheard.plans.plan import read_plan
from tests.cli.conftest import Command

PYPROJECT = """
[tool.flwr.app.components]
serverapp = "canary_app.server:app"
clientapp = "canary_app.client:app"
[tool.flwr.app.config]
num-server-rounds = 3
lr = 0.05
local-epochs = 2
batch-size = 8
[tool.flwr.federations]
default = "local"
[tool.flwr.federations.local]
options.num-supernodes = 3
"""

TASK = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    def forward(self, x):
        return self.layers(x)

class Images(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 3, 3), nn.Flatten(), nn.Linear(108, 2))

def get_model():
    return Net()
"""

ANOTHER = """
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 2)
    def forward(self, x):
        return self.last(x)
"""

CLIENT = """
import torch
def train(net, rate):
    return torch.optim.SGD(net.parameters(), lr=rate)
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "app"
    package = folder / "canary_app"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    for name, text in {"__init__": "", "task": TASK, "client": CLIENT, "server": ""}.items():
        (package / f"{name}.py").write_text(text)
    draws = np.random.default_rng(0)
    x, y = draws.normal(size=(160, 4)).astype(np.float32), draws.integers(0, 2, 160)
    y[:2] = 0, 1
    np.savez(folder / "spare.npz", x=x, y=y)
    names = [f"c{column}" for column in range(4)]
    table = [",".join([*names, "diagnosis"])]
    for row, to in zip(x, y, strict=True):
        table.append(",".join([*(f"{one:.4f}" for one in row), "ab"[to]]))
    (folder / "spare.csv").write_text("\n".join(table) + "\n")
    monkeypatch.chdir(folder)
    yield folder
    for name in [one for one in sys.modules if one.partition(".")[0] == "canary_app"]:
        del sys.modules[name]


def test_draws_canaries_for_the_nodes_of_an_app(overheard: Command, app: Path) -> None:
    said = overheard("canaries", "--flower", ".", "--data", "spare.npz", "--out", "drawn")
    assert said.code == 0, said.err
    assert "Network: canary_app.task:Net. Clients: 3." in said.out
    assert "overheard audit drawn/plan.toml --transcript RECORDING" in said.out
    plan = read_plan(app / "drawn" / "plan.toml")
    candidates, training = plan.data.candidates, plan.training
    # 20 canaries of each of 3 clients and as many held out are the most that 160 examples give.
    assert candidates is not None
    assert (candidates.members, candidates.canaries) == (20, "mislabelled")
    assert (training.rounds, training.rate, training.epochs, training.batch) == (3, 0.05, 2, 8)
    # The files are those that the plan alone draws.
    again = overheard("canaries", "drawn/plan.toml", "--out", "again")
    assert again.code == 0, again.err
    names = {f"client-{number}.npz" for number in range(3)} | {"truth.json", "plan.toml"}
    assert {one.name for one in (app / "drawn").iterdir()} == names
    for name in names:
        assert (app / "drawn" / name).read_bytes() == (app / "again" / name).read_bytes()
    truth = json.loads((app / "drawn" / "truth.json").read_text())
    offered = truth["offered"]
    assert sum(map(len, offered.values())) == 120
    partition = partition_for_plan(plan, load_data(plan, Resources()), 0)
    assert partition.candidates is not None
    for number in range(3):
        rows = list(partition.members[client(number)])
        with np.load(app / "drawn" / f"client-{number}.npz") as held:
            assert np.array_equal(held["x"], partition.candidates.inputs[rows].numpy())
        assert set(truth["members"][f"client/{number}"]) < set(offered[f"client/{number}"])


@pytest.mark.slow
def test_reads_a_table_and_another_number_of_clients(overheard: Command, app: Path) -> None:
    said = overheard(
        *("canaries", "--flower", ".", "--data", "spare.csv", "--label", "diagnosis"),
        *("--clients", "2", "--out", "drawn", "--quiet"),
    )
    assert (said.code, said.out, said.err) == (0, "", "")
    plan = read_plan(app / "drawn" / "plan.toml")
    assert plan.data.clients == 2
    assert not (app / "drawn" / "client-2.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "mend"),
    [
        ((), "overheard canaries --flower . --data FILE --out drawn"),
        (("--flower", "."), "add --data FILE"),
        (("drawn/plan.toml", "--flower", "."), "not both"),
        (("plan.toml", "--clients", "2"), "--clients goes with --flower"),
        (
            ("--flower", ".", "--data", "spare.npz", "--clients", "1000"),
            "too few examples for canaries of 1000 clients",
        ),
    ],
)
def test_says_what_is_missing(
    overheard: Command, app: Path, arguments: tuple[str, ...], mend: str
) -> None:
    said = overheard("canaries", *arguments, "--out", "drawn")
    assert said.code == 2
    assert mend in said.err
    assert not (app / "drawn").exists()


def test_asks_for_the_number_of_clients_that_no_file_states(
    overheard: Command, app: Path
) -> None:
    path = app / "pyproject.toml"
    path.write_text(path.read_text().partition("[tool.flwr.federations]")[0])
    said = overheard("canaries", "--flower", ".", "--data", "spare.npz", "--out", "drawn")
    assert said.code == 2
    assert "add --clients NUMBER" in said.err


def test_asks_which_of_several_networks_is_trained(overheard: Command, app: Path) -> None:
    task = app / "canary_app" / "task.py"
    task.write_text(TASK + ANOTHER)
    asked = ("canaries", "--flower", ".", "--data", "spare.npz", "--out", "drawn")
    said = overheard(*asked)
    assert said.code == 2
    assert "canary_app.task:Net, canary_app.task:Own" in said.err
    assert overheard(*asked, "--model", "canary_app.task:Own").code == 0
