"""The page on files names each file that an audit writes, and what purge does with it."""

import re
import shutil
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from overheard.plans.release_plan import ReleasePlan
from tests.cli.conftest import CPU, Command

PAGE = Path(__file__).parents[2] / "docs" / "what-files-hold.md"

NOT_ALWAYS = {
    "transcript/ended.json", "node_names.json", "run_config.json", "bank/*.safetensors",
    "followed.json", "in-use.json", "purged.json", "check.sarif", "pictures.html",
}  # fmt: skip
"""Files of the page that this audit does not write."""


def table(section: str) -> dict[str, tuple[str, ...]]:
    """Return the other cells of each row of a section, by the patterns of its first cell."""
    text = (
        PAGE.read_text(encoding="utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    )
    rows = re.findall(r"^\| `([^|]+)` \|(.*)\|$", text, re.MULTILINE)
    return {
        name: tuple(cell.strip() for cell in cells.split("|"))
        for names, cells in rows
        for name in names.split("`, `")
    }


def names_below(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def assert_same(written: set[str], patterns: set[str]) -> None:
    """Check that each file has a pattern, and each pattern a file."""
    unnamed = {one for one in written if not any(fnmatch(one, each) for each in patterns)}
    assert unnamed == set()
    unused = {each for each in patterns if not any(fnmatch(one, each) for one in written)}
    assert unused <= NOT_ALWAYS


@pytest.fixture
def audited(overheard: Command, finished: Path, plan: Path, tmp_path: Path) -> Path:
    """The folder of an audit with its evidence."""
    folder = shutil.copytree(finished, tmp_path / "audit")
    assert overheard("audit", plan, "--out", folder, *CPU, "--quiet").code == 0
    assert overheard("evidence", folder, "--quiet").code == 0
    return folder


def test_the_tables_name_every_file_and_what_purge_removes(
    overheard: Command, audited: Path, tmp_path: Path
):
    audit, evidence = table("An audit"), table("The evidence")
    within = {one.removeprefix("evidence/") for one in names_below(audited)
              if one.startswith("evidence/")}  # fmt: skip
    assert_same(within, set(evidence))
    assert_same({one for one in names_below(audited) if "evidence/" not in one}, set(audit))
    recording = table("A recording")
    assert_same(names_below(audited / "runs" / "no_defense-seed0"), set(recording))
    assert overheard("release", audited, "--out", tmp_path / "out", "--quiet").code == 0
    assert_same(names_below(tmp_path / "out"), set(table("A release")))
    before = names_below(audited)
    assert overheard("purge", audited, "--yes", "--quiet").code == 0
    removed = before - names_below(audited)
    for name in before:
        (told,) = [cells[3] for each, cells in audit.items() if fnmatch(name, each)] or ["kept"]
        assert told.startswith("removed") == (name in removed), name
    assert overheard("purge", audited, "--yes", "--quiet", "--results").code == 0
    assert names_below(audited) == {"purged.json"}


def test_the_retention_of_the_page_is_one():
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert ReleasePlan(**tomllib.loads(text)["release"]).retention is not None
