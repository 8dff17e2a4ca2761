"""Whether a module, once it is imported, has the truth at hand."""

import os
import subprocess
import sys

FORBIDDEN = (
    "overheard.archive",
    "overheard.auditing",
    "overheard.core.scorer",
    "overheard.core.transcript",
    "overheard.core.truth",
    "overheard.findings",
)
"""What no attack may load, nor anything below it."""

WINGS = ("pages", "question", "scorer", "statistics")
"""What no attack may load of any question of ours."""

_PROGRAM = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sys.modules, sep="\\n")
"""


def truth_loaded_by(*modules: str) -> tuple[str, ...]:
    """Name what modules load, in an interpreter of their own, that no attack may load.

    Of several modules it is what they load together. Takes seconds: torch is loaded anew.

    Raises:
        AssertionError: if they cannot be imported by themselves.

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
    return (in_question and parts[3] in WINGS) or any(
        name == one or name.startswith(f"{one}.") for one in FORBIDDEN
    )
