"""Examples in docstrings return what they show.

Only modules with an example are imported. Searching all modules took each pytest worker 10 s.
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
WITH_EXAMPLES = sorted(path for path in SOURCE.rglob("*.py") if EXAMPLE in path.read_text())


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def examples(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield name, line and docstring of every documented object with an example."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, DOCUMENTED) and EXAMPLE in (text := ast.get_docstring(node) or ""):
            line = 0 if isinstance(node, ast.Module) else node.lineno
            yield getattr(node, "name", path.stem), line, text


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=module_name)
def test_examples_in_docstrings_return_what_they_show(path: Path) -> None:
    try:
        module = importlib.import_module(module_name(path))
    except ModuleNotFoundError as error:
        pytest.skip(f"needs {error.name} of an optional extra")
    failures: list[str] = []
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    examples_run = 0
    for name, line, text in examples(path):
        test = parser.get_doctest(text, dict(vars(module)), name, str(path), line)
        examples_run += runner.run(test, out=failures.append).attempted
    assert not failures, "".join(failures)
    assert examples_run > 0


def test_finds_modules_with_examples() -> None:
    assert len(WITH_EXAMPLES) > 20
