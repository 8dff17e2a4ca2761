"""Finds the classes of built-in plugins and claims in their files, without importing any."""

import ast
from collections import Counter
from pathlib import Path

_MODULES = (
    "algorithms/*.py",
    "data/datasets/*.py",
    "data/splits/*.py",
    "defenses/*.py",
    "learning/distillation/methods/*.py",
    "learning/models/*.py",
    "questions/*/attacks/*.py",
    "questions/*/claim.py",
    "questions/*/question.py",
    "questions/*/scorer.py",
    "questions/*/scorer/*.py",
)
"""Where modules with a plugin or a claim are, in the folder of Overheard."""


def plugin_classes(package: Path) -> dict[str, str]:
    """Map the name of each plugin's or claim's class to its module, as "algorithms.fed_avg".

    A plugin is a class that states its `name`, and a claim one of the base `Claim`. Class names
    that two plugins share, such as that of the data set and of the model `Own`, are left out.

    Args:
        package: the folder of Overheard, with a subfolder for each of its packages.

    """
    found = [
        (name, ".".join(path.relative_to(package).with_suffix("").parts))
        for pattern in _MODULES
        for path in sorted(package.glob(pattern))
        for name in _public_classes(path.read_text(encoding="utf-8"))
    ]
    names = Counter(name for name, _ in found)
    return {name: module for name, module in found if names[name] == 1}


def _public_classes(text: str) -> list[str]:
    return [
        statement.name
        for statement in ast.parse(text).body
        if isinstance(statement, ast.ClassDef)
        and (
            any(map(_sets_name, statement.body)) or "Claim" in map(ast.unparse, statement.bases)
        )
    ]


def _sets_name(line: ast.stmt) -> bool:
    match line:
        case ast.AnnAssign(target=ast.Name("name"), value=ast.expr()):
            return True
        case ast.Assign(targets=[ast.Name("name")]):
            return True
    return False
