"""The package in examples/plugin is found, audited and named, with nothing of ours edited."""

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1] / "examples" / "plugin"
SOURCE = PLUGIN / "src"

PLAN = """
title = "Who holds most"
seeds = [0]

[data]
source = "digits"
split = "iid"
clients = 4
examples = [20, 120]

[training]
model = "logistic"
rounds = 2
rate = 0.1
epochs = 1
batch = 10

[[arms]]
name = "even"
defenses = ["even_norm"]

[[threats]]
attacks = [{ kind = "update_norm", certainty = 0.9 }]
by_round = false
"""


@dataclass(frozen=True)
class Site:
    """A place on the path where the package is installed, as pip leaves it."""

    folder: Path

    def install(self, name: str, version: str, entries: str) -> None:
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        (info / "entry_points.txt").write_text(entries)

    def overheard(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        path = [str(self.folder), str(SOURCE), *[entry for entry in sys.path if entry]]
        return subprocess.run(
            [sys.executable, "-m", "overheard", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "COLUMNS": "200"},
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    entries = [
        line
        for group, held in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in held.items()))
    ]
    site = Site(tmp_path_factory.mktemp("site"))
    site.install(project["name"], project["version"], "\n".join(entries) + "\n")
    return site


@pytest.fixture(scope="module")
def audited(site: Site) -> Path:
    (site.folder / "plan.toml").write_text(PLAN)
    done = site.overheard("audit", "plan.toml", "--out", "out", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return site.folder / "out"


def test_its_question_is_answered_and_its_defense_is_in_force(audited: Path) -> None:
    told = json.loads((audited / "findings.json").read_text())
    findings = told["findings"]
    # Four clients in each of two arms.
    assert len(findings) == 8
    assert {one["question"] for one in findings} == {"larger_half"}
    assert {score["name"] for one in findings for score in one["scores"]} == {"brier", "hit"}
    assert {one["arm"] for one in findings} == {"no defense", "even"}
    assert "EvenNorm(length=1.0)" in json.dumps(told["arms"])


def test_its_version_stands_in_the_findings_and_in_the_folders_claim(audited: Path) -> None:
    assert (
        json.loads((audited / "findings.json").read_text())["versions"]["overheard-sizes"]
        == "1.2"
    )
    assert "# overheard-sizes 1.2\n" in (audited / "plan.toml").read_text()


def test_the_report_tells_of_its_question(audited: Path) -> None:
    page = (audited / "report.html").read_text()
    assert "update_norm" in page
    assert "brier" in page


def test_the_list_says_where_a_part_comes_from_and_a_broken_one_is_one_warning(
    site: Site,
) -> None:
    broken = "[overheard.attacks]\nno_such = no_such_module:Attack\n"
    site.install("broken-thing", "0.1", broken)
    said = site.overheard("list", "attacks")
    assert said.returncode == 0, said.stderr
    lines = [line.strip() for line in said.stdout.splitlines()]
    assert "update_norm" in lines
    assert lines.count("from overheard-sizes 1.2") == 1
    (warning,) = said.stderr.splitlines()
    assert warning.startswith("overheard: broken-thing 0.1: ")
    assert "'no_such' (no_such_module:Attack)" in warning
    assert "No module named 'no_such_module'" in warning
    assert "uninstall the package" in warning


def test_the_schema_of_plans_names_its_parts(site: Site) -> None:
    said = site.overheard("schema")
    assert said.returncode == 0, said.stderr
    assert '"update_norm"' in said.stdout
    assert '"even_norm"' in said.stdout


def test_nothing_of_ours_names_it() -> None:
    ours = Path(__file__).parents[1] / "src"
    naming = [file for file in ours.rglob("*.py") if "larger_half" in file.read_text()]
    assert naming == []
