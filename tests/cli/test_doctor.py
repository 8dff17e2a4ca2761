"""The command `doctor`: which rules look at what, its exit codes and its formats."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from overheard.archive.manifest import DefenseRecord, read_manifest, write_manifest
from overheard.core.custom_code.reference import NO_CODE_VARIABLE
from overheard.core.mechanism import Mechanism
from tests.cli.conftest import Command

CLAIM = Mechanism(1.0, 1.0, 1e-5, "client", "client", moves=1.0, stated=4.5, unit="client")
"""Epsilon 4.38 for one round, and stated for all of them."""


@pytest.fixture
def claiming(recording: Path, tmp_path: Path) -> Path:
    """A recording of several rounds that states the epsilon of one round."""
    manifest = read_manifest(recording)
    record = DefenseRecord("LocalDpMod", "LocalDpMod()", "client", "each client", CLAIM)
    folder = shutil.copytree(recording, tmp_path / "claiming")
    write_manifest(folder / "transcript", replace(manifest, defenses=(record,)))
    return folder


def test_a_critical_fault_gives_exit_code_1_in_every_format(
    overheard: Command, claiming: Path, tmp_path: Path
):
    sarif, junit = tmp_path / "doctor.sarif", tmp_path / "doctor.xml"
    said = overheard("doctor", claiming, "--json", "--sarif", sarif, "--junit", junit)
    assert said.code == 1, said
    found = json.loads(said.out)
    assert found["exit_code"] == 1
    assert found["counts"]["critical"] == len(
        [one for one in found["criticisms"] if one["severity"] == "critical"]
    )
    ids = {one["id"] for one in found["criticisms"]}
    assert "epsilon-of-one-round" in ids
    results = json.loads(sarif.read_text())["runs"][0]["results"]
    assert {one["ruleId"] for one in results} == ids
    failures = ElementTree.parse(junit).getroot().findall(".//failure")
    assert len(failures) == found["counts"]["critical"]


@pytest.mark.parametrize("name", ["absent", "absent.py", "broken.py", "folder"])
def test_a_target_without_readable_python_is_invalid(
    overheard: Command, tmp_path: Path, name: str
):
    (tmp_path / "folder").mkdir()
    for broken in (tmp_path / "broken.py", tmp_path / "folder" / "broken.py"):
        broken.write_text("def (")
    said = overheard("doctor", tmp_path / name)
    assert said.code == 2, said


def test_a_folder_with_more_folders_than_are_looked_at_is_invalid(
    overheard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("overheard.doctor.source.files.MOST_FILES", 3)
    (tmp_path / "main.py").write_text("x = 1")
    for name in "abc":
        (tmp_path / name).mkdir()
    said = overheard("doctor", tmp_path)
    assert said.code == 2, said


@pytest.mark.parametrize("name", ["client.py", "a \x1b[1m<b>.py", "b\udcff.py"])
def test_faults_of_code_point_to_a_file_below_the_current_folder(
    overheard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.chdir(tmp_path)
    Path("app").mkdir()
    Path("app", name).write_text(APP)
    for target in ("app", f"app/{name}"):
        said = overheard("doctor", target, "--sarif", "doctor.sarif")
        assert said.code == 1, said
        results = json.loads(Path("doctor.sarif").read_text())["runs"][0]["results"]
        place = results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert Path(unquote(place, errors="surrogateescape")) == Path("app", name)


def test_a_plan_without_faults_gives_exit_code_0(overheard: Command, plan: Path):
    said = overheard("doctor", plan)
    assert said.code == 0, said
    assert "Faults: 0 critical" in said.out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--prove",), "runs an app"),
        (("--plan", "other.toml"), "give the folder of one"),
        (("--client", "app:app"), "belong to --prove"),
    ],
)
def test_refuses_options_of_other_targets(
    overheard: Command, plan: Path, options: tuple[str, ...], why: str
):
    said = overheard("doctor", plan, *options)
    assert said.code == 2
    assert why in " ".join(said.err.split())


APP = """
from opacus import PrivacyEngine
from flwr.clientapp import ClientApp

app = ClientApp()

@app.train()
def train(message, context):
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=make(), optimizer=sgd(), data_loader=data(), noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    fit(model, optimizer, loader)
    return reply(model, {"epsilon": engine.get_epsilon(1e-5)})
"""


def test_reads_an_app_and_runs_it_only_on_demand(
    overheard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(NO_CODE_VARIABLE, "0")
    file = tmp_path / "client_app.py"
    file.write_text(APP)
    said = overheard("doctor", file, "--json")
    assert said.code == 1
    assert "accountant-per-round" in {one["id"] for one in json.loads(said.out)["criticisms"]}
    refused = overheard("doctor", file, "--prove", "--no-code")
    assert refused.code == 2
    assert "--no-code refuses" in " ".join(refused.err.split())
