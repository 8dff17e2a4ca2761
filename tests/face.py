"""Write the parts of every kind into the stub of public names: `make face` runs it.

The part of the stub above the marker is written by hand.
"""

import ast
from collections import Counter
from pathlib import Path

import overheard
from overheard.plans.registries import REGISTRIES

STUB = Path(overheard.__file__).with_suffix(".pyi")

MARKER = "# The parts of all kinds, written by `make face`.\n"

LINE_LENGTH = 96


def stub_text(current: str) -> str:
    """Return the stub with its current head, followed by every part."""
    head, marker, _ = current.partition(MARKER)
    assert marker, f"{STUB}: the line {MARKER!r} is missing"
    parts = [part for kind in REGISTRIES for part in kind.plugins().values()]
    names = Counter([*declared(head), *(part.__name__ for part in parts)])
    # Parts that share a class name, such as the data set and the model `Own`, are left out.
    return (
        head
        + MARKER
        + "".join(map(_import, (part for part in parts if names[part.__name__] == 1)))
    )


def declared(stub: str) -> dict[str, str]:
    """Return the module of each public name that a stub declares."""
    return {
        alias.name: f"overheard.{statement.module}"
        for statement in ast.parse(stub).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def _import(part: type) -> str:
    start = f"from {part.__module__.removeprefix('overheard')} import"
    name = f"{part.__name__} as {part.__name__}"
    line = f"{start} {name}\n"
    return line if len(line) <= LINE_LENGTH else f"{start} (\n    {name},\n)\n"


if __name__ == "__main__":
    STUB.write_text(stub_text(STUB.read_text(encoding="utf-8")), encoding="utf-8")
