"""Applies all rules on source code to the files of an app."""

from pathlib import Path

from overheard.doctor.criticism import Diagnosis


def diagnose_source(path: Path) -> Diagnosis:
    """Apply every rule on source code to an app: a Python file, or a folder with some.

    Raises:
        PlanError: if it is neither.

    """
    return Diagnosis((), (), ())
