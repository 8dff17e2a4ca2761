"""What must hold of the whole source, and no import contract can say."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import overheard
from overheard.plans.kinds import ATTACKS, questions

SOURCE = Path(overheard.__file__).parent

ROOMS = ("auditing", "report", "gate")

OTHER_WORDS = {"accuracy", "false_alarm_rate"}
"""Names of scores that stand for something else besides: what a model is worth, and a part of
any claim that has a time."""

DRAWS = "overheard.drawing"


def _literals(path: Path) -> Iterator[str]:
    """Every string of a module that is no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in told:
            yield node.value


@cache
def _names() -> set[str]:
    """The names of all questions, of their scores, and of all attacks."""
    every = questions()
    scores = {score for question in every.values() for score in question.measures}
    return {*every, *scores, *ATTACKS.parts()} - OTHER_WORDS


def _named(text: str) -> set[str]:
    """The names that a string is, or holds where no other word is spelled so."""
    words = set(re.findall(r"[\w.]+", text))
    return {text} & _names() | {name for name in words & _names() if not name.isalpha()}


@pytest.mark.parametrize("room", ROOMS)
def test_no_question_score_or_attack_is_named_by_what_knows_them_all_alike(room: str) -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in sorted((SOURCE / room).rglob("*.py"))
        for text in _literals(path)
        for name in _named(text)
    }
    assert found == set()


def test_no_question_score_or_attack_is_named_by_a_template() -> None:
    for path in (SOURCE / "report").glob("*.j2"):
        text = path.read_text(encoding="utf-8")
        assert _named(text) == set()
        for word in ("membership", "shift", "People", "identit", "class shares"):
            assert word not in text


@pytest.mark.parametrize(
    "module", ["overheard.auditing.run", "overheard.learning.workers.worker"]
)
def test_what_audits_and_workers_load_draws_nothing(module: str) -> None:
    """Every question and attack is found, and no chart."""
    code = (
        f"import sys, {module}\n"
        "from overheard.plans.kinds import ATTACKS, questions\n"
        "questions(), ATTACKS.parts()\n"
        "print(sorted(name for name in sys.modules"
        f" if name.split('.')[0] == 'matplotlib' or name.startswith('{DRAWS}')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


MOST_MODULES = 25
"""Of a folder, its `__init__` apart."""

MOST_LINES = 60
"""Of a function, its docstring apart."""

FOLDERS = sorted({path.parent for path in SOURCE.rglob("*.py")})

MODULES = sorted(SOURCE.rglob("*.py"))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_folder_is_a_drawer() -> None:
    counts = {folder: len(list(folder.glob("*.py"))) - 1 for folder in FOLDERS}
    crowded = {str(folder): count for folder, count in counts.items() if count > MOST_MODULES}
    assert crowded == {}, f"more than {MOST_MODULES} modules: cut the folder by subject"


def test_every_public_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    # A data set and a model of the user's own: the names stand in records.
    twice = {name: held for name, held in homes.items() if len(held) > 1 and name != "Own"}
    assert twice == {}, "two classes of one name: say in the name what sets them apart"


def test_every_function_can_be_read_at_a_glance() -> None:
    long = {
        f"{path.relative_to(SOURCE)}: {node.name}": lines
        for path in MODULES
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (lines := _lines_of(node)) > MOST_LINES
    }
    assert long == {}, f"more than {MOST_LINES} lines: give its steps names of their own"


def _lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    end = node.end_lineno
    assert end is not None
    docstring = node.body[0] if ast.get_docstring(node) is not None else None
    told = 0
    if docstring is not None:
        assert docstring.end_lineno is not None
        told = docstring.end_lineno - docstring.lineno + 1
    return end - node.lineno + 1 - told


def test_to_import_a_question_imports_nothing() -> None:
    told = {
        str(path.relative_to(SOURCE)): len(_tree(path).body)
        for path in (SOURCE / "questions").rglob("__init__.py")
    }
    talkative = {name for name, statements in told.items() if statements > 1}
    assert talkative == set(), "leave the docstring alone there: loading it loads the truth"
