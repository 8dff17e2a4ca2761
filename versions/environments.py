"""Throwaway environments: one Python each, with packages installed by uv."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent

LOCKS = ROOT / "locks"
"""Folder of the locks: the version of every package, a file for each Python."""

ROOM_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables of the caller that would bring other packages into an environment."""


def lock_file(python: str) -> Path:
    """Return the lock for a Python, such as "3.13"."""
    return LOCKS / f"python{python}.txt"


def find_uv() -> str:
    """Return the command uv: that of this environment, or else that on the path.

    Raises:
        FileNotFoundError: if it is not installed.

    """
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise FileNotFoundError("uv is not installed: run pip install '.[dev]' in a checkout")
    return found


def find_python(version: str) -> Path | None:
    """Return the Python of a version, such as "3.13", that is on the path; None = none."""
    name = f"python{version}"
    if shutil.which(name) is None:
        return None
    code = "import sys; print(sys.executable)"
    done = subprocess.run([name, "-c", code], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def make_environment(folder: Path, python: Path | str) -> Path:
    """Make an empty environment in a new folder, and return its Python."""
    run_uv("venv", "--quiet", "--clear", "--no-project", "--python", str(python), str(folder))
    return folder / "bin" / "python"


def install(
    python: Path,
    requirements: Sequence[str],
    *,
    lock: Path | None = None,
    overrides: Path | None = None,
) -> None:
    """Install packages into the environment of a Python.

    Args:
        python: Python of the environment.
        requirements: arguments for uv: packages, files, or `--editable` with a folder.
        lock: versions to take; None = the newest that fit.
        overrides: versions to take even if another package refuses them; None = none.

    Raises:
        subprocess.CalledProcessError: if a package cannot be installed.

    """
    options = [] if lock is None else ["--constraint", str(lock)]
    options += [] if overrides is None else ["--override", str(overrides)]
    run_uv("pip", "install", "--quiet", "--python", str(python), *options, *requirements)


def run_uv(*arguments: str) -> None:
    """Run uv in the root of the checkout."""
    subprocess.run([find_uv(), *arguments], check=True, cwd=ROOT, env=clean_variables())


def clean_variables() -> dict[str, str]:
    """Return the variables of this process without those that add packages."""
    return {name: value for name, value in os.environ.items() if name not in ROOM_VARIABLES}
