"""Two modules import by a name that is no literal of Overheard; no module runs text."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FOLDERS = (ROOT / "src" / "overheard", ROOT / "studies" / "src" / "overheard_studies")

IMPORTING = ("core/custom_code/reference.py", "core/plugin_registry.py")
"""What imports the code of users, and that of other packages."""

BY_NAME = frozenset({"import_module", "__import__", "find_spec", "import_built_in"})
"""Functions whose first argument must be a literal elsewhere."""

NEVER = frozenset(
    {"exec", "eval", "compile", "spec_from_file_location", "exec_module", "load_module"}
)
"""Functions that run text, or a file by its path."""

NEVER_IMPORTED = frozenset({"runpy", "imp", "zipimport", "code", "codeop"})

WORDS = re.compile(
    rf"(?<![.\w])({'|'.join(sorted(BY_NAME | NEVER | NEVER_IMPORTED))})\b"
    r"|\.(import_module|find_spec|exec_module|load_module)\b|\bload\(\)"
)
"""Matches in each file with a fault."""

SELF_NAMED = {
    # The file of a class that Overheard finds in its own folder.
    "__init__.py": "import_built_in",
}
"""Files in which `import_built_in`, which takes modules of Overheard alone, gets other names.
"""


def find_faults(text: str, place: str) -> Iterator[str]:
    """Yield each line of a file that imports by a name, or runs text."""
    if not WORDS.search(text):
        return  # most files, which take seconds to parse
    tree = ast.parse(text)
    constants = {
        target.id
        for one in tree.body
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant)
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [one.name for one in node.names]
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if NEVER_IMPORTED.intersection(names):
                yield f"{place}:{node.lineno} imports {names}"
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name):
            name = called.id
        elif isinstance(called, ast.Attribute):
            # Methods such as `re.compile` and `network.eval` have these names, too.
            name = called.attr if called.attr not in {"compile", "eval"} else ""
        else:
            continue
        is_entry = name == "load" and not node.args and not node.keywords
        if name in NEVER or (is_entry and place not in IMPORTING):
            yield f"{place}:{node.lineno} calls {name}"
        if name in BY_NAME and place not in IMPORTING and SELF_NAMED.get(place) != name:
            first = node.args[0] if node.args else None
            is_ours = isinstance(first, ast.Constant) or (
                isinstance(first, ast.Name) and first.id in constants
            )
            if not is_ours:
                yield f"{place}:{node.lineno} calls {name} with a name that is no literal"


def test_only_the_resolver_and_the_registry_import_by_name():
    files = [(path, folder) for folder in FOLDERS for path in folder.rglob("*.py")]
    assert len(files) > 500
    faults = [
        fault
        for path, folder in files
        for fault in find_faults(path.read_text("utf-8"), path.relative_to(folder).as_posix())
    ]
    assert faults == []


@pytest.mark.parametrize(
    "line",
    [
        *("import_module(name)", "importlib.import_module(f'{a}.b')", "__import__(name)"),
        *("find_spec(name)", "exec(text)", "eval(text)", "compile(text, '', 'exec')"),
        *("entry.load()", "import runpy", "from runpy import run_path"),
        *(
            "spec_from_file_location(a, b)",
            "spec.loader.exec_module(m)",
            "import_built_in(name)",
        ),
    ],
)
def test_a_file_that_does_so_is_found(line: str):
    assert list(find_faults(line, "some/file.py"))


@pytest.mark.parametrize(
    "line", ["import_module('os')", "NAME = 'os'\nfind_spec(NAME)", "network.eval()"]
)
def test_literals_are_no_fault(line: str):
    assert list(find_faults(line, "some/file.py")) == []
