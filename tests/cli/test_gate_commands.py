"""`check` and `compare` start quickly, and their help teaches."""

import subprocess
import sys

import pytest

from tests.cli.conftest import Command

HEAVY = "{'jinja2', 'matplotlib', 'mlflow', 'pandas', 'sklearn', 'torch'}"


@pytest.mark.slow
def test_judging_findings_loads_no_large_library() -> None:
    code = (
        "import sys, overheard.cli.checking, overheard.cli.tracking\n"
        "import overheard.tracking.mlflow_run\n"
        f"print(sorted({HEAVY} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "check",
            ("--like", "--write-policy", "--sarif", "--json", "[[exceptions]]", "expires"),
        ),
        ("compare", ("--markdown", "--json", "Exit codes", "within the intervals")),
        ("audit", ("--mlflow", "MLFLOW_TRACKING_URI")),
    ],
)
def test_the_help_shows_options_and_examples(
    overheard: Command, command: str, words: tuple[str, ...]
) -> None:
    said = overheard(command, "--help")
    assert said.code == 0
    flat = " ".join(said.out.replace("│", " ").split())
    for word in words:
        assert word in flat
    assert f"overheard {command} " in flat
