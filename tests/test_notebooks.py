"""The notebooks of the docs run from top to bottom, and show what they promise."""

import ast
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


def run_cells(path: Path) -> list[object]:
    """Run all cells of code in one namespace, and return the value that each ends with."""
    shown, names = list[object](), dict[str, object]()
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []  # outputs would go stale
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), names)
        if last is not None:
            expression = ast.Expression(last.value)
            shown.append(eval(compile(expression, str(path), "eval"), names))
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    shown = run_cells(path)
    assert len(shown) >= 2
    assert any(
        "Guessing" in show() for one in shown if (show := getattr(one, "_repr_html_", None))
    )


def test_there_are_two_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} == {"first-audit", "recording"}
