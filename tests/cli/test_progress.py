"""Progress is a bar on terminals, and plain lines elsewhere."""

import io

import pytest
from rich.console import Console

from overheard.auditing.progress import ProgressStep
from overheard.cli.progress import progress_bar


def drawn(*, terminal: bool, quiet: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=100)
    with progress_bar(console, quiet) as on_step:
        for done in range(3):
            on_step(ProgressStep(f"[red]none[/red], seed {done}", done, 2))
    return file.getvalue()


def test_shows_progress_on_a_terminal():
    shown = drawn(terminal=True, quiet=False)
    assert "2/2" in shown
    assert "[red]none[/red], seed 2" in shown


def test_shows_no_progress_if_quiet_and_none_of_quick_work_without_a_terminal():
    assert drawn(terminal=False, quiet=False).strip() == ""
    assert drawn(terminal=True, quiet=True) == ""


def test_prints_plain_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch):
    clock = iter([0.0, 1.0, 16.0, 17.0])
    monkeypatch.setattr("overheard.cli.progress.monotonic", lambda: next(clock))
    said = drawn(terminal=False, quiet=False)
    assert said == "1 of 2, 16 s: [red]none[/red], seed 1\n"
