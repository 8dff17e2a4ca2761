"""The progress bar is shown on terminals only."""

import io

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


def test_shows_no_progress_if_quiet_or_not_on_a_terminal():
    assert drawn(terminal=False, quiet=False).strip() == ""
    assert drawn(terminal=True, quiet=True) == ""
