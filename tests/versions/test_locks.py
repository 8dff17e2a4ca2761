"""The lock pins every package that the project asks for, by hash, and names no machine."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

EXTRAS = PROJECT["optional-dependencies"]

ASKED = {
    "all": [*PROJECT["dependencies"], *(one for extra in EXTRAS.values() for one in extra)],
    "audit": [*PROJECT["dependencies"], *EXTRAS["dp"]],
}
"""What the project asks for, by the name of the lock."""

ENTRY = re.compile(r"[a-z0-9-]+==[\w.!]+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n")


def entries(lock: str) -> list[str]:
    """Return the entries of a lock, each with its hashes."""
    text = (ROOT / "locks" / f"{lock}.txt").read_text(encoding="utf-8")
    return re.split(r"^(?=\S)", text, flags=re.M)[1:]


def pinned(lock: str, python: str) -> dict[str, str]:
    """Return the version of each package in a lock, for a Python on this system."""
    lines = [Requirement(one.partition(" \\")[0]) for one in entries(lock)]
    environment = {"python_version": python, "python_full_version": f"{python}.5"}
    return {
        one.name: str(one.specifier).removeprefix("==")
        for one in lines
        if one.marker is None or one.marker.evaluate(environment)
    }


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("lock", ASKED)
def test_the_lock_fits_what_the_project_asks_for(lock: str, python: str):
    versions = pinned(lock, python)
    # Its build depends on the machine, so it is installed before.
    assert "torch" not in versions
    for requirement in map(Requirement, ASKED[lock]):
        if requirement.name != "torch":
            assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)])


@pytest.mark.parametrize("lock", ASKED)
def test_every_entry_has_hashes_and_none_an_index_or_a_folder(lock: str):
    assert len(entries(lock)) > 50
    assert [one for one in entries(lock) if not ENTRY.fullmatch(one)] == []


def test_what_audits_need_is_a_part_of_the_lock():
    # Without markers: a package may be for fewer systems in the part.
    parts, whole = (
        {re.sub(r" ;[^\\]*", " ", one) for one in entries(lock)} for lock in ("audit", "all")
    )
    assert parts < whole


def test_no_library_of_one_kind_of_machine_is_in_the_lock():
    assert not [one for one in entries("all") if one.startswith(("nvidia-", "triton"))]
