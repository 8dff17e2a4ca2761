"""Commands that only read start fast: they load none of the libraries that compute."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate.documents import document, summary_row, write_document

COMPUTING = {"torch", "numpy", "scipy", "pandas", "sklearn", "matplotlib"}

POLICY = """
[[leaks]]
name = "nothing leaks"
question = "membership"
score = "membership_auc"
no_better_than = 0.6
"""


def loaded_libraries(*arguments: str | Path) -> set[str]:
    """Run the command in a process of its own, and return the computing libraries it loads."""
    code = (
        "import sys, overheard.cli.main as m\n"
        f"sys.argv = ['overheard', *{[str(one) for one in arguments]!r}]\n"
        "try: m.main()\n"
        f"except SystemExit as end: print(end.code, *({COMPUTING!r} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_listing_terms_loads_no_library_that_computes():
    assert not loaded_libraries("list", "terms")


def test_help_loads_no_library_that_computes():
    assert not loaded_libraries("audit", "--help")


@pytest.mark.slow
def test_showing_a_run_loads_only_what_its_check_needs(recording: Path):
    assert loaded_libraries("show", recording) <= {"torch", "numpy", "scipy"}


@pytest.mark.slow
def test_the_gate_loads_no_library_that_computes(tmp_path: Path):
    findings = write_document(tmp_path, document(summary_row(0.6, 0.7, score="membership_auc")))
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    assert not loaded_libraries("check", findings, "--policy", policy)
    assert not loaded_libraries("compare", findings, findings)
