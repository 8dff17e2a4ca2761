"""Rules for the whole source that import contracts cannot express."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import overheard
from overheard.plans.registries import ATTACKS, questions

SOURCE = Path(overheard.__file__).parent

GENERIC_PACKAGES = ("auditing", "report", "gate")

AMBIGUOUS_NAMES = {"accuracy", "false_alarm_rate"}
"""Score names with a second meaning: a model's accuracy, and a rate that any claim with a time
has."""

DRAWING = "overheard.drawing"

READING_CALLS = {
    *("read_text", "read_bytes", "open", "parse", "literal_eval", "fromfile", "memmap"),
    *("json.load", "json.loads", "tomllib.load", "tomllib.loads", "np.load", "np.loadtxt"),
}
"""Calls that read or parse a file whole, or open it. Calls on `files(...)` do not count."""

READERS = {
    # Small files, and what they hold.
    "disk.reading": {"open", "json.loads", "tomllib.loads", "parse", "literal_eval"},
    "disk.folder_lock": {"open", "json.loads"},  # 1,000 bytes
    "disk.limits": {"open"},
    # Weights and data, which are read in parts or within limits.
    "archive.tensor_files": {"open"},
    "archive.weights": {"open"},
    "recorders.exported_weights": {"open"},
    "recorders.formats._messagepack": {"open"},
    "recorders.model_files.onnx_file": {"read_bytes"},
    "recorders.model_files.torch_file": {"open"},
    "data.reading.arrays": {"open"},
    "data.reading.mnist_files": {"open"},
    "data.reading.parquet_tables": {"open"},
    "data.reading.tables": {"open"},
    "data.reading.formats.image_folder": {"open"},
    "data.datasets.cifar10": {"open"},
    "data.datasets.digits": {"open", "np.loadtxt"},
    # To compute digests.
    "disk.digests": {"open"},
    "report.evidence.digests": {"open"},
    "tracking.mlflow_run": {"open"},
    # To write.
    "disk.writing": {"open"},
    # Files of this package.
    "gate.policy_schema": {"tomllib.loads"},
    "plans.schema.plan_schema": {"tomllib.loads"},
    "report.evidence.standards": {"read_text", "tomllib.loads"},
    "report.question_files": {"read_text", "tomllib.loads"},
    "report.terms": {"tomllib.loads"},
    # Source code that is installed, and files of the system.
    "core.plugin_discovery": {"read_text", "parse"},
    "core.plugin_registry": {"read_text"},
    "plans.source_code": {"read_bytes", "parse"},
    "simulation.cluster.ray_executor": {"read_bytes"},
    "auditing.audited_run": {"read_bytes"},
    "cli.exits": {"open"},
    # Short texts that this process, or one of its own, has made or checked.
    "auditing.cells.claim_store": {"json.loads"},
    "drawing.svg": {"json.loads"},
    "recorders.reply_values": {"json.loads"},
    "doctor.trial.trial_run": {"open"},
    # What `disk.reading` has read or checked, and the beginning of files of this program.
    "archive.repeated_keys": {"json.loads"},
    "archive.self_digest": {"open"},
    "archive.tensor_cache": {"json.loads"},
    "auditing.purging.due_purges": {"json.loads", "open"},
    "disk.open_folder": {"open"},
}
"""The modules that may read files or parse texts themselves, and by which calls."""


def _literals(path: Path) -> Iterator[str]:
    """Yield every string of a module except docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            yield node.value


@cache
def _names() -> set[str]:
    """Return the names of all questions, scores and attacks."""
    by_name = questions()
    scores = {score for question in by_name.values() for score in question.measures}
    return {*by_name, *scores, *ATTACKS.plugins()} - AMBIGUOUS_NAMES


def _named(text: str) -> set[str]:
    """Return the names in a string; plain words count only if they are the whole string."""
    words = set(re.findall(r"[\w.]+", text))
    return {text} & _names() | {name for name in words & _names() if not name.isalpha()}


@pytest.mark.parametrize("package", GENERIC_PACKAGES)
def test_generic_packages_name_no_question_score_or_attack(package: str) -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in sorted((SOURCE / package).rglob("*.py"))
        for text in _literals(path)
        for name in _named(text)
    }
    assert found == set()


def test_templates_name_no_question_score_or_attack() -> None:
    for path in (SOURCE / "report").glob("*.j2"):
        text = path.read_text(encoding="utf-8")
        assert _named(text) == set()
        for word in ("membership", "shift", "People", "identit", "label shares"):
            assert word not in text


@pytest.mark.slow
def test_audits_and_workers_load_no_drawing_code_and_no_library_for_tables() -> None:
    """Libraries for tables take some 100 MB; only audits of tables and a few attacks need them.

    Every question, attack and data source is loaded.
    """
    code = (
        "import sys, overheard.auditing.run, overheard.learning.workers.worker\n"
        "from overheard.plans.registries import ATTACKS, DATASETS, questions\n"
        "questions(), ATTACKS.plugins(), DATASETS.plugins()\n"
        "unwanted = {'matplotlib', 'pandas', 'pyarrow', 'sklearn'}\n"
        "print(sorted(name for name in sys.modules"
        f" if name.split('.')[0] in unwanted or name.startswith('{DRAWING}')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


MAX_MODULES = 25
"""Modules per folder, without `__init__`."""

MAX_LINES = 60
"""Lines per function, without its docstring."""

FOLDERS = sorted({path.parent for path in SOURCE.rglob("*.py")})

MODULES = sorted(SOURCE.rglob("*.py"))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_folder_has_too_many_modules() -> None:
    counts = {folder: len(list(folder.glob("*.py"))) - 1 for folder in FOLDERS}
    crowded = {str(folder): count for folder, count in counts.items() if count > MAX_MODULES}
    assert crowded == {}, f"more than {MAX_MODULES} modules: split the folder by subject"


def _reading_calls(path: Path) -> Iterator[str]:
    """Yield the calls of a module that read, such as "json.loads" or "open"."""
    for node in ast.walk(_tree(path)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called == "open":
            yield called
        elif isinstance(node.func, ast.Attribute) and not called.startswith("files("):
            yield from {node.func.attr, ".".join(called.split(".")[-2:])} & READING_CALLS


@pytest.mark.slow
def test_only_listed_modules_read_files_and_parse_texts() -> None:
    """All others call `disk.reading`, which bounds memory and reports what is damaged."""
    found = dict[str, set[str]]()
    for path in MODULES:
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        if calls := set(_reading_calls(path)):
            found[module] = calls
    assert found == READERS


def test_no_two_public_classes_share_a_name() -> None:
    modules: dict[str, list[str]] = {}
    for path in MODULES:
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    # The custom data set and the custom model are both `Own`: their names are in stored reprs.
    shared = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert shared.keys() <= {"Own"}, "two classes share a name: choose more specific names"


@pytest.mark.slow
def test_no_function_is_too_long() -> None:
    long = {
        f"{path.relative_to(SOURCE)}: {node.name}": lines
        for path in MODULES
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (lines := _lines_of(node)) > MAX_LINES
    }
    assert long == {}, f"more than {MAX_LINES} lines: extract steps into functions"


def _lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    end = node.end_lineno
    docstring = node.body[0] if ast.get_docstring(node) is not None else None
    documentation = 0
    if docstring is not None:
        documentation = docstring.end_lineno - docstring.lineno + 1
    return end - node.lineno + 1 - documentation


def test_question_packages_import_nothing() -> None:
    statements = {
        str(path.relative_to(SOURCE)): len(_tree(path).body)
        for path in (SOURCE / "questions").rglob("__init__.py")
    }
    importing = {name for name, count in statements.items() if count > 1}
    assert importing == set(), "keep only the docstring: imports here load the ground truth"


def test_attacks_say_how_many_workers_train() -> None:
    """By default a worker would start workers of its own, and `--workers 1` start others."""
    silent = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for folder in ("questions", "simulation", "linkage")
        for path in sorted((SOURCE / folder).rglob("*.py"))
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"train_cohort", "train_groups"}
        and "workers" not in {keyword.arg for keyword in node.keywords}
    ]
    assert silent == []
