"""The command that imports weights saved by other frameworks."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from overheard.archive.layout import count_committed_rounds
from overheard.archive.reader import open_transcript
from overheard.core.messages import Broadcast, Update
from tests.cli.conftest import CPU, Command, assert_user_error

PAGE = (Path(__file__).parents[2] / "docs" / "import.md").read_text()


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """One round of two clients, and the final model."""
    folder = tmp_path / "exported"
    for name in ("0/global", "0/client-0", "0/client-1", "1/global"):
        path = folder / f"{name}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({"weight": torch.ones(2)}, path)
    return folder


def test_prints_a_summary_of_the_import_and_the_next_step(
    overheard: Command, exported: Path, tmp_path: Path
):
    said = overheard("import", exported, "--out", tmp_path / "run")
    assert (said.code, said.err) == (0, "")
    assert "1 rounds of 2 clients: 2 updates, 0 missing updates." in said.out
    assert f"overheard show {tmp_path / 'run'}" in said.out
    shown = overheard("show", tmp_path / "run", "--verify")
    assert "server reads the individual updates of 2 other parties." in shown.out
    assert "4 weight files are intact." in shown.out


def test_prints_nothing_if_quiet(overheard: Command, exported: Path, tmp_path: Path):
    said = overheard("import", exported, "--out", tmp_path / "run", "--quiet")
    assert (said.code, said.out, said.err) == (0, "", "")
    assert count_committed_rounds(tmp_path / "run") == 2


def test_refuses_torch_files_and_says_how_to_convert_them(
    overheard: Command, exported: Path, tmp_path: Path
):
    torch.save({"weight": torch.ones(2)}, exported / "0" / "c.pt")
    said = overheard("import", exported, "--out", tmp_path / "run")
    assert_user_error(said, "c.pt", "from safetensors.torch import save_file")


def test_refuses_an_unknown_kind_of_files(overheard: Command, exported: Path, tmp_path: Path):
    assert overheard("import", exported, "--out", tmp_path / "run", "--kind", "sums").code == 2
    assert not (tmp_path / "run").exists()


def test_help_contains_an_example(overheard: Command):
    said = overheard("import", "--help")
    assert said.code == 0
    assert "round-0000/client-0.safetensors" in said.out
    assert "overheard import exported --out recordings/march" in said.out


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
