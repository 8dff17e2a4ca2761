"""Shows how far long work has come, on the terminal and nowhere else."""

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

from overheard.auditing.progress import OnStep, Step


@contextmanager
def progress_bar(console: Console, quiet: bool) -> Iterator[OnStep]:
    """Draw a bar with the time that remains while the block runs.

    Nothing is drawn if `quiet` or where the console is no terminal.
    """
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
    with bar:
        task = bar.add_task("starting", total=None)

        def on_step(step: Step) -> None:
            bar.update(task, description=step.what, completed=step.done, total=step.total)

        yield on_step
