"""What pip installs is what the code imports, and nothing else."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import overheard

ROOT = Path(__file__).parents[2]

SOURCE = Path(overheard.__file__).parent

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

MODULES = {
    "annotated-types": "annotated_types",
    "dp-accounting": "dp_accounting",
    "fpdf2": "fpdf",
    "lazy-loader": "lazy_loader",
    "mlflow-skinny": "mlflow",
    "scikit-learn": "sklearn",
    "tomli-w": "tomli_w",
}
"""The module of each package whose name is another."""

INSTALLED_WITH = {"pydantic_core": "pydantic"}
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
