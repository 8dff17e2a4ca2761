"""Builds and jobs name exact versions, and the bill of materials lists the locked packages."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PINNED_REQUIREMENT = re.compile(r"[\w.-]+==[\w.]+")

USES = re.compile(r"uses: *(\S+)")

LOCKED = re.compile(r"^([\w.-]+)==([^ ;\\]+)", re.MULTILINE)


def test_jobs_use_actions_of_one_commit():
    pages = [
        *ROOT.glob(".github/workflows/*.yml"),
        *ROOT.glob("integrations/**/*.yml"),
        *ROOT.glob("docs/*.md"),
    ]
    used = [name for page in pages for name in USES.findall(page.read_text(encoding="utf-8"))]
    assert len(used) >= 5
    for name in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name) or name.startswith("./"), name


def test_the_image_is_named_by_its_digest():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    images = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert images
    assert all(re.search(r"@sha256:[0-9a-f]{64}$", image) for image in images)


@pytest.mark.parametrize(
    "folder", [".", "studies", "examples/flower", "examples/huggingface", "examples/plugin"]
)
def test_each_build_names_exact_versions(folder: str):
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
    required = project["build-system"]["requires"]
    assert all(PINNED_REQUIREMENT.fullmatch(one) for one in required)
    locks = (ROOT / "locks/build.txt", ROOT / "locks/all.txt")
    locked = "".join(path.read_text(encoding="utf-8") for path in locks)
    assert all(f"{one} " in locked for one in required)


def test_all_installations_check_hashes():
    for name in ("Makefile", "Dockerfile", "noxfile.py"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "require-hashes" in text
        assert "build.txt" in text


def test_every_locked_package_has_a_hash():
    for path in (ROOT / "locks").glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        for entry in re.split(r"\n(?=\S)", text.strip()):
            assert "--hash=sha256:" in entry, entry


def test_the_bill_of_materials_is_that_of_the_locks(tmp_path: Path):
    written = tmp_path / "overheard.cdx.json"
    subprocess.run([sys.executable, ROOT / "locks/sbom.py", written], check=True)
    bill = json.loads(written.read_text(encoding="utf-8"))
    # All fields that the schema of CycloneDX 1.6 requires of a document and of its parts.
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    components = bill["components"]
    assert all(one["type"] == "library" and one["name"] for one in components)
    references = [one["bom-ref"] for one in components]
    assert len(set(references)) == len(references)
    everything = (ROOT / "locks/all.txt").read_text(encoding="utf-8")
    listed = {(one["name"], one["version"]) for one in components}
    assert {name for name, _ in listed - set(LOCKED.findall(everything))} == {"torch"}
    assert set(LOCKED.findall(everything)) <= listed
    digests = {digest["content"] for one in components for digest in one.get("hashes", ())}
    assert digests == set(re.findall(r"sha256:([0-9a-f]{64})", everything))
    audit = (ROOT / "locks/audit.txt").read_text(encoding="utf-8")
    required = {one["name"] for one in components if one["scope"] == "required"}
    assert required == {name for name, _ in LOCKED.findall(audit)} | {"torch"}


SKIPPED = {"name": "torch", "skip_reason": "not found"}

FLAWED = {
    "name": "jinja2",
    "version": "2.4.1",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.10.1"]}],
}

SOUND = {"name": "numpy", "version": "2.4.0", "vulns": []}


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        (None, 0, "nothing was checked: no route to host"),
        ([SOUND], 0, "Packages checked: 1. Flaws: 0.\n"),
        ([SOUND, FLAWED], 1, "jinja2 2.4.1: PYSEC-1, mended in 2.10.1"),
        (
            [SKIPPED],
            0,
            "checked: 0. Flaws: 0.\nNot checked, as the list of flaws lacks them: 1, torch.",
        ),
    ],
)
def test_the_search_for_flaws_says_what_it_could_not_check(
    tmp_path: Path, packages: list[dict[str, object]] | None, code: int, said: str
):
    report, log = tmp_path / "flaws.json", tmp_path / "flaws.log"
    log.write_text("Traceback:\nno route to host\n")
    if packages is not None:
        report.write_text(json.dumps({"dependencies": packages, "fixes": []}))
    command = [sys.executable, ROOT / "locks/flaws.py", report, log]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (code, "")
    assert said in run.stdout
