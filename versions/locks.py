"""Write the locks: the version of every package that is installed, a file for each Python.

`make locks` writes them, and `make check-locks` says which one no longer fits `pyproject.toml`.
A version stays as it is until `pyproject.toml` refuses it: remove its line to get the newest.
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from versions.environments import LOCKS, ROOT, lock_file, run_uv

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that have a lock."""


def write_lock(python: str, path: Path) -> None:
    """Write the lock of a Python to a file, keeping the versions that are in it.

    It names no index and no folder, so it is the same on every machine. With markers for the
    platform it fits all systems.
    """
    run_uv(
        *("pip", "compile", "--quiet", "--universal", "--no-header", "--no-annotate"),
        *("--no-emit-index-url", "--all-extras", "--python-version", python),
        *("--output-file", str(path), str(ROOT / "pyproject.toml")),
    )


def outdated_locks() -> list[str]:
    """Return the names of the locks that do not fit `pyproject.toml`."""
    outdated = []
    with TemporaryDirectory() as folder:
        for python in PYTHONS:
            stored, written = lock_file(python), Path(folder) / "lock.txt"
            written.unlink(missing_ok=True)
            if stored.exists():
                shutil.copyfile(stored, written)
            write_lock(python, written)
            if not stored.exists() or stored.read_bytes() != written.read_bytes():
                outdated.append(stored.name)
    return outdated


def main(arguments: list[str]) -> int:
    """Write all locks, or with `--check` only compare them; return the exit code."""
    if arguments == ["--check"]:
        outdated = outdated_locks()
        print(f"outdated: {', '.join(outdated)}: run make locks" if outdated else "locks fit")
        return 1 if outdated else 0
    LOCKS.mkdir(exist_ok=True)
    for python in PYTHONS:
        write_lock(python, lock_file(python))
        print(f"wrote {lock_file(python).relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
