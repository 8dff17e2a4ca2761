"""The Makefile finds a Python that is new enough; the Dockerfile copies files that exist."""

import json
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MAKE = shutil.which("make")

NEW = f'#!/bin/sh\nexec {sys.executable} "$@"\n'

OLD = "#!/bin/sh\nexit 1\n"
"""Stands for Python 3.10, which fails every check of its version."""

KNOWN_INSTRUCTIONS = {
    "FROM",
    "ARG",
    "ENV",
    "WORKDIR",
    "COPY",
    "RUN",
    "USER",
    "ENTRYPOINT",
    "CMD",
}

TORCH = re.compile(r"torch==([\w.]+)")


def run_make(tmp_path: Path, pythons: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run make where only these Pythons exist; return its exit code and output."""
    assert MAKE is not None
    for name, script in pythons.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [MAKE, f"VENV={tmp_path}/venv", *arguments],
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        ({"python3.13": NEW}, "python3.13"),
        ({"python3": NEW}, "python3"),
        ({"python3.12": NEW, "python3.11": NEW}, "python3.11"),
        ({"python3": OLD, "python": NEW}, "python"),
    ],
)
def test_make_audit_takes_a_python_that_is_new_enough(
    tmp_path: Path, pythons: dict[str, str], chosen: str
):
    code, printed = run_make(tmp_path, pythons, "--dry-run", "audit")
    assert code == 0
    assert f"\n{chosen} -m venv {tmp_path}/venv\n" in printed


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
def test_make_audit_needs_no_framework_and_takes_torch_from_the_given_index(tmp_path: Path):
    index = "TORCH_INDEX=https://example.org/cpu"
    _, printed = run_make(tmp_path, {"python3": NEW}, "--dry-run", "audit", index)
    assert "--index-url https://example.org/cpu torch==" in printed
    assert "--require-hashes --no-deps --requirement locks/audit.txt" in printed
    assert "all.txt" not in printed
    assert "flower" not in printed
    _, printed = run_make(tmp_path, {}, "--dry-run", "audit")
    assert "--index-url" not in printed


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("pythons", "arguments", "place"),
    [
        ({}, (), "PATH"),
        ({"python3": OLD}, (), "PATH"),
        ({"mine": OLD, "python3": NEW}, ("PYTHON=mine",), "mine"),
    ],
)
def test_make_refuses_an_old_python_and_says_what_to_do(
    tmp_path: Path, pythons: dict[str, str], arguments: tuple[str, ...], place: str
):
    code, printed = run_make(tmp_path, pythons, f"{tmp_path}/venv/bin/python", *arguments)
    assert code == 2
    assert f"needs Python 3.11 or newer, and {place} has none: install one" in printed
    assert "make audit PYTHON=" in printed


def instructions() -> list[tuple[str, str]]:
    """Return each instruction of the Dockerfile with its arguments."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


def test_the_dockerfile_has_known_instructions_and_copies_files_that_reach_it():
    assert {name for name, _ in instructions()} <= KNOWN_INSTRUCTIONS
    assert instructions()[0][0] == "FROM"
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name, arguments in instructions():
        if name == "COPY":
            *sources, _ = arguments.split()
            for source in sources:
                assert (ROOT / source).exists()
                assert any(fnmatch(source, line[1:]) for line in ignored if line[:1] == "!")


def test_the_container_runs_the_command_without_privileges():
    by_name = dict(instructions())  # the last of each counts
    assert by_name["USER"] not in ("root", "0")
    assert json.loads(by_name["ENTRYPOINT"]) == ["overheard"]
    assert json.loads(by_name["CMD"]) == ["--help"]


def test_everything_installs_the_same_torch():
    names = ("Makefile", "Dockerfile", "README.md", "noxfile.py")
    assert len({tuple(set(TORCH.findall((ROOT / name).read_text()))) for name in names}) == 1
