"""The command that imports weights saved by other frameworks."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits

from overheard.archive.reader import open_transcript
from overheard.core.messages import Broadcast, Update
from tests.cli.conftest import CPU, Command, assert_user_error

PAGE = (Path(__file__).parents[2] / "docs" / "import.md").read_text()


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """One round of two clients, and the final model."""
    folder = tmp_path / "exported"
    first = {"0/global": 1.0, "0/client-0": 2.0, "0/client-1": 4.0, "1/global": 3.0}
    for name, weight in first.items():
        path = folder / f"{name}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({"weight": torch.tensor([weight, 1.0])}, path)
    return folder


def test_prints_a_summary_of_the_import_and_the_next_step(
    overheard: Command, exported: Path, tmp_path: Path
):
    said = overheard("import", exported, "--out", tmp_path / "run")
    assert (said.code, said.err) == (0, "")
    assert "1 rounds of 2 clients: 2 updates, 0 missing updates." in said.out
    assert "lead to the next broadcasts" in said.out
    assert f"overheard show {tmp_path / 'run'}" in said.out
    shown = overheard("show", tmp_path / "run", "--verify")
    assert "server reads the individual updates of 2 other parties." in shown.out
    assert "4 weight files are intact." in shown.out


def test_says_at_once_that_only_global_models_were_saved(
    overheard: Command, exported: Path, tmp_path: Path
):
    for path in exported.rglob("client-*"):
        path.unlink()
    said = overheard("import", exported, "--out", tmp_path / "run")
    assert said.code == 0
    assert "1 rounds without an update of a client." in said.out
    assert "No client's weights were found, only global models" in said.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--kind", "gradients"], "requires rate (--rate)"),
        (["--rate", "0.1"], 'rate requires kind = "gradients"'),
        (["--saved", "after"], "The replies in 0 were left out"),
    ],
)
def test_options_say_how_files_are_read(
    overheard: Command, exported: Path, tmp_path: Path, options: list[str], words: str
):
    said = overheard("import", exported, "--out", tmp_path / "run", *options)
    assert words in said.out + said.err


RATE = 0.25


def save_run(folder: Path, kind: str) -> None:
    """Save three rounds of FedAvg over three clients, whose files hold this."""
    generator = torch.Generator().manual_seed(0)
    sent = torch.randn(4, 3, generator=generator)
    for number in range(4):
        place = folder / f"round-{number}"
        place.mkdir(parents=True)
        save_file({"w": sent}, place / "global.safetensors")
        steps = 0.1 * torch.randn(3, 4, 3, generator=generator)
        for client, step in enumerate(steps if number < 3 else ()):
            content = {"weights": sent + step, "differences": step, "gradients": -step / RATE}
            save_file({"w": content[kind]}, place / f"client-{client}.safetensors")
        sent = sent + steps.mean(0)


@pytest.mark.parametrize("stated", ["weights", "differences"])
@pytest.mark.parametrize("kind", ["weights", "differences", "gradients"])
def test_a_wrong_reading_of_files_is_told_with_the_option_that_mends_it(
    overheard: Command, tmp_path: Path, kind: str, stated: str
):
    save_run(tmp_path / "exported", kind)
    said = overheard(
        "import", tmp_path / "exported", "--out", tmp_path / "run", "--kind", stated, "--quiet"
    )
    assert said.code == 0
    if kind == stated:
        assert (said.out, said.err) == ("", "")
        return
    assert "Warning: The replies do not lead to the next broadcasts" in said.err
    mend = re.search(r"`overheard import (.*?)`", said.err)
    assert mend is not None
    again = overheard(
        "import", tmp_path / "exported", "--out", tmp_path / "mended", *mend[1].split()
    )
    assert (again.code, again.err) == (0, "")
    assert "The replies lead to the next broadcasts by the mean of the replies." in again.out


def test_a_model_saved_after_its_round_is_told(overheard: Command, tmp_path: Path):
    save_run(tmp_path / "exported", "weights")
    for number in range(3):
        shutil.copy(
            tmp_path / "exported" / f"round-{number + 1}" / "global.safetensors",
            tmp_path / "exported" / f"round-{number}" / "global.safetensors",
        )
    shutil.rmtree(tmp_path / "exported" / "round-3")
    said = overheard("import", tmp_path / "exported", "--out", tmp_path / "run")
    assert 'saved = "after"' in said.err
    mended = overheard(
        "import", tmp_path / "exported", "--out", tmp_path / "mended", "--saved", "after"
    )
    assert "The replies lead to the next broadcasts by the mean of the replies" in mended.out


def test_refuses_whole_networks_in_torch_files_and_says_what_to_save(
    overheard: Command, exported: Path, tmp_path: Path
):
    torch.save(torch.nn.Linear(2, 1), exported / "0" / "c.pt")
    said = overheard("import", exported, "--out", tmp_path / "run")
    assert_user_error(said, "c.pt", "save its state_dict()")


@pytest.mark.slow
def test_an_imported_run_gives_the_findings_of_its_source(
    overheard: Command, plan: Path, recording: Path, tmp_path: Path
):
    answers = []
    for message in open_transcript(recording).messages:
        place = tmp_path / "exported" / f"round-{message.round}"
        place.mkdir(parents=True, exist_ok=True)
        body = message.body
        if isinstance(body, Broadcast):
            names = list(body.weights)
            save_file(dict(body.weights), place / "global.safetensors")
        elif isinstance(body, Update):
            name = message.sender.replace("/", "-")
            save_file(dict(body.delta), place / f"{name}.safetensors")
            clear = {"examples": body.examples, "metrics": dict(body.metrics)}
            answers.append({"round": message.round, "client": name} | clear)
    about = {"tensors": names, "answers": answers, "rounds": 2}
    (tmp_path / "exported" / "about.json").write_text(json.dumps(about))
    run = tmp_path / "run"
    kind = ("--kind", "differences", "--quiet")
    assert overheard("import", tmp_path / "exported", "--out", run, *kind).code == 0
    shutil.copy(recording / "truth.json", run)
    found = []
    for number, source in enumerate((recording, run)):
        out = tmp_path / f"out{number}"
        said = overheard("audit", plan, "--transcript", source, "--out", out, *CPU)
        assert said.code == 0, said.err
        found.append((out / "findings.csv").read_text())
    assert found[0] == found[1]
    assert len(found[0].splitlines()) > 3


def test_the_example_in_the_documentation_can_be_imported(overheard: Command, tmp_path: Path):
    home: dict[str, object] = {}
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    about = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert code is not None
    assert about is not None
    exec(compile(code[1], "import.md", "exec"), home)
    save = home["save"]
    assert callable(save)
    weights = {
        name: torch.ones(2) for name in ("conv.weight", "conv.bias", "fc.weight", "fc.bias")
    }
    folder = tmp_path / "exported"
    for number, names in enumerate(
        (("global", "client-0", "hospital-a"), ("global", "client-0"))
    ):
        for name in names:
            save(folder, number, name, weights)
    save(folder, 2, "global", weights)
    (folder / "about.toml").write_text(about[1])
    assert overheard("import", folder, "--out", tmp_path / "run", "--quiet").code == 0
    shown = " ".join(overheard("show", tmp_path / "run").out.split())
    assert "Clipping(norm=1.0), enforced at the client" in shown
    assert "2 (benign, malignant)" in shown
    assert "2, complete" in shown
    assert "2 senders with 118 to 400 examples" in shown


EXPERIMENT = Path(__file__).parents[1] / "recorders" / "formats" / "experiments" / "plain"

DIGITS_HELD = {
    "NODE_ff1f6da3-737a-4078-884c-354dd2c900fa": [11, 17, 18, 14, 0, 0, 0, 0, 0, 0],
    "NODE_30f183f6-16ef-46c8-85f7-db7594f51347": [0, 0, 0, 15, 22, 29, 24, 0, 0, 0],
    "NODE_aaf52626-63af-4058-b2ee-1acb426d7952": [10, 14, 8, 0, 0, 1, 1, 25, 32, 29],
}
"""The labels that the nodes of the experiment held."""


def build_digits_net() -> torch.nn.Module:
    """The network of the experiment's training plan."""
    return torch.nn.Sequential(torch.nn.Linear(64, 10))


@pytest.mark.slow
def test_an_experiment_of_fedbiomed_is_imported_planned_and_audited(
    overheard: Command, tmp_path: Path
):
    """A real run leaks its label shares: the claims are far closer than a guess."""
    folder = Path(shutil.copytree(EXPERIMENT, tmp_path / "experiment"))
    digits = load_digits()
    (folder / "about.json").write_text(
        json.dumps({"class_names": list("0123456789"), "input_shape": [64],
                    "recipe": {"rate": 0.1, "epochs": 1, "batch": 16}})
    )  # fmt: skip
    np.savez(tmp_path / "spare.npz", x=(digits.data / 16).astype("f4"), y=digits.target)
    run, plan, out = tmp_path / "run", tmp_path / "plan.toml", tmp_path / "out"
    assert overheard("import", folder, "--out", run, "--quiet").code == 0
    given = ("--model", f"{__name__}:build_digits_net", "--data", tmp_path / "spare.npz")
    said = overheard("init", plan, "--from-recording", run, *given)
    assert said.code == 0, said.err
    assert "Attacks that can run: mean_softmax" in said.out
    # The last threat simulates clients, which takes longer.
    plan.write_text(plan.read_text().rpartition("[[threats]]")[0])
    counts = [
        {"round": number, "party": f"client/{node}", "labels": held}
        for number in range(4)
        for node, held in DIGITS_HELD.items()
    ]
    (run / "truth.json").write_text(json.dumps({"counts": counts, "accuracy": []}))
    said = overheard("audit", plan, "--transcript", run, "--out", out, *CPU)
    assert said.code == 0, said.err
    rows = pd.read_csv(out / "findings.csv")
    whole = rows[(rows["score"] == "l1") & (rows["rounds"] == "0 1 2 3")]
    by_attack = whole.groupby("attack")[["value", "best guess"]].mean()
    assert by_attack["value"]["llg"] < 0.25 * by_attack["best guess"]["llg"]
