"""Each lock pins every package that the project asks for, and names no machine."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from versions.environments import LOCKS, ROOT, lock_file
from versions.locks import PYTHONS

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

LINE = re.compile(r"[a-z0-9-]+==[\w.!]+( ; .+)?")


def asked() -> list[Requirement]:
    """Return what the project and its extras ask for."""
    extras = PROJECT["optional-dependencies"].values()
    listed = [*PROJECT["dependencies"], *(one for extra in extras for one in extra)]
    return [Requirement(one) for one in listed]


def pinned(lock: Path) -> dict[str, str]:
    """Return the version of each package in a lock, on this platform."""
    lines = [Requirement(one) for one in lock.read_text(encoding="utf-8").splitlines()]
    return {
        one.name: str(one.specifier).removeprefix("==")
        for one in lines
        if one.marker is None or one.marker.evaluate()
    }


def test_there_is_a_lock_for_each_python_and_no_other():
    assert {path.name for path in LOCKS.iterdir()} == {lock_file(one).name for one in PYTHONS}
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


@pytest.mark.parametrize("python", PYTHONS)
def test_a_lock_fits_what_the_project_asks_for(python: str):
    versions = pinned(lock_file(python))
    for requirement in asked():
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)])


@pytest.mark.parametrize("python", PYTHONS)
def test_a_lock_names_no_index_and_no_folder(python: str):
    lines = lock_file(python).read_text(encoding="utf-8").splitlines()
    assert len(lines) > 100
    assert [line for line in lines if not LINE.fullmatch(line)] == []
