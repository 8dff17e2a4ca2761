"""Locks, extras and noxfile agree with the project."""

import ast
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from noxfile import TINY_PLAN, missing_files
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import overheard
from overheard.plans.plan import parse_plan

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
    """Triton is there for tests that interpret kernels, on machines for which it is made."""
    kinds = [one for one in entries("all") if one.startswith(("nvidia-", "triton"))]
    assert [one.partition("==")[0] for one in kinds] == ["triton"]
    assert "platform_machine == 'x86_64' and sys_platform == 'linux'" in kinds[0]
    assert not [one for one in entries("audit") if one.startswith("triton")]


SOURCE = Path(overheard.__file__).parent


MODULES = {
    "pillow": "PIL",
    "flwr-datasets": "flwr_datasets",
    "annotated-types": "annotated_types",
    "dp-accounting": "dp_accounting",
    "fpdf2": "fpdf",
    "lazy-loader": "lazy_loader",
    "mlflow-skinny": "mlflow",
    "scikit-learn": "sklearn",
    "tomli-w": "tomli_w",
}
"""The module of each package whose name is another."""

INSTALLED_WITH = {"pydantic_core": "pydantic", "triton": "torch"}
"""Modules of packages that another one installs in the version that it needs."""

HELD_BACK = {"click"}
"""Packages of which only a version is asked for: another package brings and imports them."""

TOOLS = ("dev", "docs")
"""Extras of commands and of what the tests import."""


def imported() -> set[str]:
    """Return the packages of others that the product imports."""
    found = set[str]()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(one.name.partition(".")[0] for one in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(str(node.module).partition(".")[0])
    return found - sys.stdlib_module_names - {"overheard"} - set(INSTALLED_WITH)


def declared() -> set[str]:
    """Return the modules of all packages that the product asks for."""
    extras = PROJECT["optional-dependencies"]
    listed = [*PROJECT["dependencies"]]
    listed += [one for name in extras if name not in TOOLS for one in extras[name]]
    names = {Requirement(one).name for one in listed} - HELD_BACK
    return {MODULES.get(name, name) for name in names}


@pytest.mark.slow
def test_every_imported_package_is_declared_and_every_declared_one_imported():
    assert imported() == declared()


def test_the_classifiers_name_the_pythons_that_were_tried():
    prefix = "Programming Language :: Python :: 3."
    named = {one.removeprefix(prefix) for one in PROJECT["classifiers"] if prefix in one}
    assert named >= {"11", "12", "13"}


def test_names_each_file_that_a_wheel_misses(tmp_path: Path):
    source = Path(overheard.__file__).parent.parent
    wheel = tmp_path / "overheard.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in source.rglob("*"):
            if path.is_file() and path.name != "py.typed":
                archive.write(path, path.relative_to(source))
    assert missing_files(wheel) == ["overheard/py.typed"]


def test_the_plan_of_the_release_is_a_plan():
    assert parse_plan(TINY_PLAN, "the tiny plan").seeds == (0,)
