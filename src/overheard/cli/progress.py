"""Shows a progress bar for long work, on terminals only."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from overheard.auditing.progress import OnStep, ProgressStep


@contextmanager
def progress_bar(console: Console, quiet: bool) -> Iterator[OnStep]:
    """Show a progress bar with the remaining time while the block runs.

    Show nothing if `quiet`, or if the console is not a terminal.
    """
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
    with bar:
        task = bar.add_task("starting", total=None)

        def on_step(step: ProgressStep) -> None:
            bar.update(
                task, description=step.description, completed=step.done, total=step.total
            )

        yield on_step
