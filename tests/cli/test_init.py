"""The commands `init` and `plan check`, from a recording to first claims."""

import json
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, client
from overheard.core.task import Task
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo
from tests.cli.conftest import CPU, Command, assert_user_error
from tests.planning.conftest import (
    STATED_RECIPE,
    STATED_TASK,
    ForeignRecording,
    foreign,
    simulated,
)

__all__ = ["foreign", "simulated"]


@pytest.fixture
def stated(foreign: ForeignRecording) -> Path:
    return foreign(task=STATED_TASK, model="Logistic()", recipe=STATED_RECIPE)


def test_two_commands_from_a_recording_to_first_claims(
    overheard: Command, stated: Path, tmp_path: Path
):
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    said = overheard("init", plan, "--from-recording", stated)
    assert said.code == 0, said.err
    assert f"Next: overheard audit {plan} --transcript {stated}" in said.out
    audited = overheard("audit", plan, "--transcript", stated, "--out", out, *CPU)
    assert audited.code == 0, audited.err
    assert "Claimed, not checked" in audited.out


def test_programs_get_the_attacks_what_is_missing_and_the_next_command(
    overheard: Command, stated: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.toml"
    said = overheard("init", plan, "--from-recording", stated, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert (found["format"], found["version"]) == ("overheard init", 1)
    assert found["plan"] == str(plan)
    assert plan.is_file()
    assert found["attacks"] == ["llg", "ilrg"]
    # The recording has no examples, which this attack needs.
    assert "mean_softmax" in found["missing"]
    assert found["training"]["rate"] == STATED_RECIPE["rate"]
    assert found["next"].startswith(f"overheard audit {plan} --transcript {stated}")


RUNS = "from pathlib import Path\nPath(__file__).with_name('RAN').touch()\n"
NETWORK = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(64, 10))

def features(inputs):
    return inputs.flatten(1)
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module in the working directory that leaves the file RAN if it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "planted.py").write_text(RUNS + NETWORK)
    yield "planted"
    sys.modules.pop("planted", None)


def record_eight_rounds(folder: Path, model: str) -> Path:
    """Record three clients that train the planted network; some attack needs no more."""
    info = RunInfo("flower", model, Task((1, 8, 8), tuple("0123456789")))
    writer, generator = AsyncWriter(folder, info), torch.Generator().manual_seed(0)

    def draw() -> dict[str, torch.Tensor]:
        shapes = {"1.weight": (10, 64), "1.bias": (10,)}
        return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}

    model = draw()
    for _ in range(8):
        writer.begin_round([SERVER])
        writer.write(SERVER, frozenset(map(client, range(3))), partial(Broadcast, model.copy()))
        deltas = [draw() for _ in range(3)]
        for number, delta in enumerate(deltas):
            writer.write(client(number), frozenset({SERVER}), partial(Update, delta, 9))
        writer.commit()
        model = {
            name: one + sum(delta[name] for delta in deltas) / 3 for name, one in model.items()
        }
    writer.close()
    return folder


def extracting(reference: str) -> list[dict[str, str]]:
    """The record of a defense that runs this function."""
    settings = f"MmAug(alpha=0.5, modes=3, extractor={reference!r})"
    record = {"name": "mm_aug", "settings": settings, "enforced_at": "client"}
    return [record | {"switched_off_by": "each client"}]


@pytest.mark.parametrize(
    "hostile",
    [
        {"model": "planted:Net"},
        {"model": "Own(reference='planted:Net')"},
        {"model": "Transformer(base='planted:Net')"},
        {"model": "Logistic()", "defenses": extracting("planted:features")},
        {"model": "Logistic()", "algorithm": "PartialSharing(stays=('planted:Net',))"},
        {"model": "Logistic()", "algorithm": "planted:Net"},
    ],
)
def test_no_code_that_a_recording_names_is_run(
    overheard: Command, foreign: ForeignRecording, planted: str, hostile: dict[str, object]
):
    folder = foreign(**({"task": STATED_TASK, "recipe": STATED_RECIPE} | hostile))
    arrays = np.random.default_rng(0).random((400, 8, 8))
    np.savez("spare.npz", x=arrays, y=np.arange(400) % 10)
    said = overheard("init", "--from-recording", folder, "--data", "spare.npz")
    if said.code == 0:
        assert planted not in json.dumps(tomllib.loads(Path("plan.toml").read_text()))
        only = Path("plan.toml").read_text().partition("# This attack trains")[0]
        Path("plan.toml").write_text(only)
        audited = overheard("audit", "plan.toml", "--transcript", folder, *CPU)
        assert audited.code == 0, audited.err
    else:
        assert "no attack can run" in said.err
    assert not Path("RAN").exists()


def test_a_network_that_a_recording_names_is_proposed_and_run_once_it_is_named(
    overheard: Command, foreign: ForeignRecording, planted: str
):
    folder = foreign(task=STATED_TASK, model="planted:Net", recipe=STATED_RECIPE)
    refused = overheard("init", "--from-recording", folder)
    assert "add --model planted:Net" in refused.err
    assert not Path("RAN").exists()
    assert overheard("init", "--from-recording", folder, "--model", "planted:Net").code == 0
    assert Path("RAN").exists()
    assert tomllib.loads(Path("plan.toml").read_text())["training"]["model"] == {
        "kind": "own",
        "reference": "planted:Net",
    }


def test_the_line_of_a_proposed_network_is_ready_to_be_put_in_place(
    overheard: Command, tmp_path: Path, planted: str
):
    recording = record_eight_rounds(tmp_path / "recording", "planted:Net")
    said = overheard("init", "--from-recording", recording)
    assert "names the network planted:Net" in said.out
    assert not Path("RAN").exists()
    text = Path("plan.toml").read_text()
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("# model = "))
    lines[at : at + 2] = [lines[at].removeprefix("# ")]
    Path("plan.toml").write_text("\n".join(lines).replace("knows = []", 'knows = ["model"]'))
    told = overheard("plan", "check", "plan.toml", "--transcript", recording, "--no-estimate")
    assert told.code == 0, told.err
    assert Path("RAN").exists()


def test_names_a_free_folder_if_an_earlier_plan_was_audited(
    overheard: Command, stated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    call = ("init", "plan.toml", "--from-recording", stated, "--force")
    assert "--out" not in overheard(*call).out
    for taken in ("plan-audit", "plan-audit-2"):
        (tmp_path / taken).mkdir()
        (tmp_path / taken / "plan.toml").write_text("of another plan")
    said = overheard(*call).out
    assert f"Next: overheard audit plan.toml --transcript {stated} --out plan-audit-3" in said
    assert "plan-audit-3/report.html" in said


def test_overwrites_only_by_force(overheard: Command, stated: Path, tmp_path: Path):
    plan = tmp_path / "plan.toml"
    plan.write_text("mine")
    call = ("init", plan, "--from-recording", stated)
    assert_user_error(overheard(*call), "exists already", "--force")
    assert plan.read_text() == "mine"
    assert overheard(*call, "--force", "--quiet").code == 0
    assert plan.read_text().startswith("# A first plan")


def test_asks_on_a_terminal(
    overheard: Command, stated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    answers: Iterator[str] = iter([str(stated), ""])
    monkeypatch.setattr("overheard.cli.init._may_ask", lambda *given: not any(given))
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    assert overheard("init", tmp_path / "plan.toml").code == 0
    assert "Logistic" not in (tmp_path / "plan.toml").read_text()
    assert 'model = "logistic"' in (tmp_path / "plan.toml").read_text()


def test_asks_nothing_without_a_terminal(
    overheard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    said = overheard("init", tmp_path / "plan.toml")
    assert said.code == 0
    assert 'source = "digits"' in (tmp_path / "plan.toml").read_text()


def test_a_check_prints_lines_or_json(overheard: Command, plan: Path):
    said = overheard("plan", "check", plan, "--no-estimate")
    assert said.code == 0
    assert "runs     bias_inversion: label_shares, 3 targets" in said.out
    told = json.loads(overheard("plan", "check", plan, "--no-estimate", "--json").out)
    assert told["runs"] == 1
    assert told["attacks"][0]["able_count"] == 3


def test_a_check_of_a_plan_in_which_nothing_can_run_fails(overheard: Command, plan: Path):
    plan.write_text(plan.read_text().replace("auxiliary_per_class = 4\n", ""))
    said = overheard("plan", "check", plan, "--no-estimate")
    assert said.code == 2
    assert "No attack can run." in said.out
    assert "labelled auxiliary examples of every class" in said.out
