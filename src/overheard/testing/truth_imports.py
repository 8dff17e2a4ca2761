"""Check that importing a module does not load the ground truth."""

import os
import subprocess
import sys

FORBIDDEN_MODULES = (
    "overheard.archive",
    "overheard.auditing",
    "overheard.core.scorer",
    "overheard.core.transcript",
    "overheard.core.true_facts",
    "overheard.core.truth",
    "overheard.findings",
)
"""Modules that no attack may load, with all their submodules."""

FORBIDDEN_QUESTION_PARTS = ("checks", "pages", "question", "scorer", "statistics", "true_facts")
"""Parts of Overheard's questions that no attack may load."""

_PROGRAM = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sys.modules, sep="\\n")
"""


def find_truth_imports(*modules: str) -> tuple[str, ...]:
    """List the forbidden modules that importing these modules loads, in a new interpreter.

    Several modules are imported together. It takes seconds, as torch is loaded again.

    Raises:
        AssertionError: if a module cannot be imported.

    """
    path = os.pathsep.join([entry or os.getcwd() for entry in sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM, *modules],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise AssertionError(f"{', '.join(modules)} cannot be imported: {last}")
    return tuple(sorted(name for name in done.stdout.split("\n") if _is_forbidden(name)))


def _is_forbidden(name: str) -> bool:
    parts = name.split(".")
    in_question = parts[:2] == ["overheard", "questions"] and len(parts) > 3
    return (in_question and parts[3] in FORBIDDEN_QUESTION_PARTS) or any(
        name == one or name.startswith(f"{one}.") for one in FORBIDDEN_MODULES
    )
