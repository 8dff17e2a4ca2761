"""The examples in docstrings give what they show.

Only the modules that have one are imported: to look for examples in all of them took each
worker of pytest 10 s.
"""

import ast
import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
EXAMPLE = ">>> "
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
SHOWN = sorted(path for path in SOURCE.rglob("*.py") if EXAMPLE in path.read_text())


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def examples(path: Path) -> Iterator[tuple[str, int, str]]:
    """Name, line and docstring of all that has an example, whatever decorates it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, DOCUMENTED) and EXAMPLE in (text := ast.get_docstring(node) or ""):
            line = 0 if isinstance(node, ast.Module) else node.lineno
            yield getattr(node, "name", path.stem), line, text


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", SHOWN, ids=module_name)
def test_every_example_of_a_docstring_gives_what_it_shows(path: Path) -> None:
    try:
        module = importlib.import_module(module_name(path))
    except ModuleNotFoundError as error:
        pytest.skip(f"needs {error.name}, an extra")
    said: list[str] = []
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    ran = 0
    for name, line, text in examples(path):
        test = parser.get_doctest(text, dict(vars(module)), name, str(path), line)
        ran += runner.run(test, out=said.append).attempted
    assert not said, "".join(said)
    assert ran > 0


def test_examples_are_found() -> None:
    assert len(SHOWN) > 20
