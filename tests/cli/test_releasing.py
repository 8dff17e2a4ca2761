"""`overheard release`: from a recording with names to files that hold none of them."""

import json
import shutil
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit as run_audit
from overheard.plans.plan import ThreatPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.report.write import write_report
from tests.auditing.plans import TINY, replace_tables
from tests.cli.conftest import Command
from tests.report.release.marks import every_text

HOSPITALS = {"client/0": "Zqcharite", "client/1": "Zqinselspital", "client/2": "Zqrikshospital"}

POLICY = '[[verdicts]]\nname = "nothing leaks"\n'


@pytest.fixture(scope="module")
def audited(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit of a recording of hospitals, of which one observes."""
    home = tmp_path_factory.mktemp("audits")
    copy = shutil.copytree(recording, home / "Zqrecording")
    for path in (*copy.rglob("*.json"), *copy.rglob("*.jsonl")):
        text = path.read_text()
        for number, name in HOSPITALS.items():
            text = text.replace(f'"{number}"', f'"client/{name}"')
        path.write_text(text)
    attacks = (BiasInversion(),)
    plan = replace_tables(
        TINY,
        threats=(
            ThreatPlan(attacks=attacks),
            ThreatPlan(
                observers=(f"client/{HOSPITALS['client/1']}",),
                attacks=attacks,
                about="cohort",
                by_round=False,
            ),
        ),
    )
    folder = home / "Zqaudit"
    resources = Resources(device="cpu", workers=1)
    write_report(run_audit(plan, folder, recording=copy, resources=resources), folder)
    return folder


def test_no_name_of_a_real_audit_is_in_its_release(
    overheard: Command, audited: Path, tmp_path: Path
):
    page = (audited / "report.html").read_text().lower()
    assert all(name.lower() in page for name in HOSPITALS.values())
    policy = tmp_path / "Zqpolicies" / "policy.toml"
    policy.parent.mkdir()
    policy.write_text(POLICY)
    out = tmp_path / "out"
    said = overheard("release", audited, "--out", out, "--policy", policy, "--least-group", "2")
    assert (said.code, said.err) == (0, "")
    for words in ("Left out:", "names of parties", "Kept as written", "report.html"):
        assert words in said.out
    names = {path.name for path in out.iterdir()}
    assert names == {"report.html", "findings.json", "release.json", "digests.json",
                     "check.sarif", "evidence"}  # fmt: skip
    words = [*map(str.lower, HOSPITALS.values()), "zqrecording", "zqaudit", "zqpolicies"]
    assert [one for _, text in every_text(out) for one in words if one in text] == []
    document = json.loads((out / "findings.json").read_text())
    assert len(document["summary"]) > 0
    assert {tuple(one["observers"]) for one in document["verdicts"]} == {
        ("server",),
        ("client/1",),
    }
    assert overheard("verify", out).code == 0


def test_released_findings_are_a_reference_for_later_releases(
    overheard: Command, audited: Path, tmp_path: Path
):
    for name in ("first", "second"):
        assert overheard("release", audited, "--out", tmp_path / name, "--least-group", "2",
                         "--quiet").code == 0  # fmt: skip
    said = overheard("check", tmp_path / "second", "--like", tmp_path / "first")
    assert said.code == 0
    assert "Client 1" in said.out or "client/1" in said.out
    said = overheard("compare", tmp_path / "first", tmp_path / "second")
    assert "0 verdicts changed" in " ".join(said.out.split())


def test_three_clients_are_too_few_unless_told(
    overheard: Command, audited: Path, tmp_path: Path
):
    assert overheard("release", audited, "--out", tmp_path / "out", "--quiet").code == 0
    document = json.loads((tmp_path / "out" / "findings.json").read_text())
    assert document["summary"] == []
    overheard("release", audited, "--out", tmp_path / "out", "--with-clients", "--quiet")
    document = json.loads((tmp_path / "out" / "findings.json").read_text())
    assert len(document["findings"]) > 0
    assert "Zq" not in json.dumps(document)


def test_findings_without_an_audit_are_an_error(overheard: Command, tmp_path: Path):
    said = overheard("release", tmp_path, "--out", tmp_path / "out")
    assert said.code == 2
    assert "findings.json" in said.err


def test_a_release_and_its_audit_differ_in_nothing_that_both_hold(
    overheard: Command, audited: Path, tmp_path: Path
):
    out = tmp_path / "out"
    assert overheard("release", audited, "--out", out, "--least-group", "1").code == 0
    for pair in ((audited, out), (out / "findings.json", audited / "findings.json")):
        said = overheard("compare", *pair, "--json")
        assert said.code == 0
        found = json.loads(said.out)
        assert found["changes"] == []
        assert found["compared"] > 0
        (note,) = found["notes"]
        assert "is a release" in note
    assert "is a release" not in overheard("compare", out, out).out
    (out / "release.json").write_text('{"least_group": "many"}')
    damaged = overheard("compare", audited, out)
    assert damaged.code == 2
    assert "get the whole release again" in damaged.err
