"""Commands that load little."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from overheard.cli import studies
from overheard.cli.list_entries import ListEntry
from tests.cli.conftest import Command, assert_user_error
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
        ("review", ("--out", "--json", "Exit codes")),
        ("doctor", ("--prove", "in its table 'recording'", "Exit codes")),
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


ENTRY = ListEntry("paper", "A title", ("paper/table1  A table",), "somebody 2020")


def install(monkeypatch: pytest.MonkeyPatch, module: SimpleNamespace | None) -> None:
    monkeypatch.setattr(studies, "load_studies", lambda: module)


@pytest.mark.parametrize("arguments", [("reproduce", "decaf/table3"), ("list", "papers")])
def test_without_the_studies_a_command_says_how_to_install_them(
    overheard: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
):
    install(monkeypatch, None)
    assert_user_error(overheard(*arguments), "not installed", "pip install ./studies")


def test_installed_studies_are_listed_and_told_what_to_run(
    overheard: Command, monkeypatch: pytest.MonkeyPatch
):
    asked = list[object]()
    module = SimpleNamespace(
        list_papers=lambda: (ENTRY,),
        reproduce_study=lambda *given: asked.extend(given),
        reproduce_all=asked.append,
        write_report_of_all=asked.append,
    )
    install(monkeypatch, module)
    assert "paper/table1  A table" in overheard("list", "papers").out
    command = ("reproduce", "paper/table1", "--runs", "2", "--arm", "epsilon 5", "--quick")
    assert overheard(*command).code == 0
    assert asked[:7] == ["paper/table1", None, True, (), ["epsilon 5"], (0, 1), False]
