"""The package in examples/plugin is found, audited and listed without changes to overheard."""

import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.slow

PLUGIN = Path(__file__).parents[1] / "examples" / "plugin"
SOURCE = PLUGIN / "src"


@dataclass(frozen=True)
class Site:
    """A working directory, and a folder on the path with packages installed as by pip."""

    folder: Path

    def install(self, name: str, version: str, entries: str) -> None:
        info = self.folder / "installed" / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        (info / "entry_points.txt").write_text(entries)

    def overheard(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        installed = self.folder / "installed"
        path = [str(installed), str(SOURCE), *[entry for entry in sys.path if entry]]
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
        for group, parts in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in parts.items()))
    ]
    site = Site(tmp_path_factory.mktemp("site"))
    site.install(project["name"], project["version"], "\n".join(entries) + "\n")
    return site


@pytest.fixture(scope="module")
def audited(site: Site) -> Path:
    done = site.overheard("audit", PLUGIN / "plan.toml", "--out", "out", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return site.folder / "out"


def test_audits_its_question_with_its_defense(audited: Path) -> None:
    document = json.loads((audited / "findings.json").read_text())
    findings = document["findings"]
    # Of five runs in each of two arms, one attack claims of four clients together, and one,
    # which knows the median size, of each of them.
    clients = [f"client/{number}" for number in range(4)]
    claims = Counter(tuple(finding["targets"]) for finding in findings)
    assert claims == {tuple(clients): 10, **{(one,): 10 for one in clients}}
    assert not document["refusals"]
    assert {finding["question"] for finding in findings} == {"larger_half"}
    assert {score["name"] for finding in findings for score in finding["scores"]} == {
        "brier",
        "hit",
    }
    assert {finding["arm"] for finding in findings} == {"no defense", "even"}
    assert "EvenNorm(length=1.0)" in json.dumps(document["arms"])


def test_the_truth_of_a_run_has_the_facts_that_the_question_reads(audited: Path) -> None:
    truth = min((audited / "runs").glob("no_defense-*/truth.json"))
    sizes = json.loads(truth.read_text())["client_sizes"]
    assert sizes.keys() == {f"client/{number}" for number in range(4)}
    # 20 to 120 examples of each client, in both rounds.
    assert all(len(one) == 2 and 20 <= one[0] == one[1] <= 120 for one in sizes.values())


def test_the_page_of_pictures_has_a_picture_of_each_claim_and_of_its_truth(
    audited: Path,
) -> None:
    page = (audited / "pictures.html").read_text()
    # Ten runs, with one claim of all clients and one of each of the four.
    targets = "client 0, client 1, client 2 and client 3 together"
    assert page.count(f"Claimed of {targets}") == 10
    assert page.count(f"True of {targets}") == 10
    assert page.count("data:image/png;base64,") == 2 * 10 * 5
    assert "data:image" not in (audited / "report.html").read_text()


def test_its_policy_fails_without_the_defense_and_passes_with_it(
    site: Site, audited: Path
) -> None:
    checked = site.overheard(
        *("check", audited / "findings.json", "--policy", PLUGIN / "policy.toml"),
        *("--junit", "check.xml"),
    )
    assert checked.returncode == 1, checked.stderr
    cases = ElementTree.parse(site.folder / "check.xml").iter("testcase")
    failed = {case.get("name"): case.find("failure") is not None for case in cases}
    assert sorted(failed.values()) == [False, False, True]
    assert all(name.startswith("no defense") is bad for name, bad in failed.items())


def test_records_its_version_in_the_findings_and_in_the_plan(audited: Path) -> None:
    assert (
        json.loads((audited / "findings.json").read_text())["versions"]["overheard-sizes"]
        == "1.2"
    )
    assert "# overheard-sizes 1.2\n" in (audited / "plan.toml").read_text()


def test_the_report_includes_its_question(audited: Path) -> None:
    page = (audited / "report.html").read_text()
    assert "update_norm" in page
    assert "brier" in page


def test_the_list_names_the_origin_of_parts_and_warns_once_of_a_broken_one(
    site: Site,
) -> None:
    broken = "[overheard.attacks]\nno_such = no_such_module:Attack\n"
    site.install("broken-thing", "0.1", broken)
    result = site.overheard("list", "attacks")
    assert result.returncode == 0, result.stderr
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert "update_norm" in lines
    assert lines.count("from overheard-sizes 1.2") == 2
    (warning,) = result.stderr.splitlines()
    assert warning.startswith("overheard: broken-thing 0.1: ")
    assert "'no_such' (no_such_module:Attack)" in warning
    assert "No module named 'no_such_module'" in warning
    assert "uninstall the package" in warning


def test_the_plan_schema_has_its_parts(site: Site) -> None:
    result = site.overheard("schema")
    assert result.returncode == 0, result.stderr
    assert '"update_norm"' in result.stdout
    assert '"even_norm"' in result.stdout


def test_no_module_of_overheard_names_it() -> None:
    source = Path(__file__).parents[1] / "src"
    naming = [file for file in source.rglob("*.py") if "larger_half" in file.read_text()]
    assert naming == []
