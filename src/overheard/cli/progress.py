"""Shows the progress of long work: a bar on a terminal, else a plain line now and then."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import final

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
from overheard.cli.terminal import escaped_text

SECONDS_BETWEEN_LINES = 15.0
"""Without a terminal: seconds before the first line and between two lines."""

_LOG = logging.getLogger("overheard")


@contextmanager
def progress_bar(console: Console, quiet: bool) -> Iterator[OnStep]:
    """Show progress while the block runs: a bar on a terminal, else plain lines.

    Show nothing if `quiet`. Each new step is also logged.
    """
    steps = _StepLog()
    if quiet or not console.is_terminal:
        lines = _PlainLines(console, quiet)

        def on_plain_step(step: ProgressStep) -> None:
            steps.log(step)
            lines.print(step)

        yield on_plain_step
        return
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=None)

        def on_step(step: ProgressStep) -> None:
            steps.log(step)
            bar.update(
                task, description=step.description, completed=step.done, total=step.total
            )

        yield on_step


@final
class _StepLog:
    """Logs each step once."""

    def __init__(self) -> None:
        self._last = ""

    def log(self, step: ProgressStep) -> None:
        if step.description != self._last:
            self._last = step.description
            _LOG.info("%d of %d: %s", step.done, step.total, step.description)


@final
class _PlainLines:
    """Prints a line of progress at most every few seconds, as logs of pipelines need it."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self._console, self._quiet = console, quiet
        self._begun = self._printed = monotonic()

    def print(self, step: ProgressStep) -> None:
        now = monotonic()
        if self._quiet or now - self._printed < SECONDS_BETWEEN_LINES:
            return
        self._printed = now
        line = f"{step.done} of {step.total}, {now - self._begun:.0f} s: {step.description}"
        self._console.print(escaped_text(line), soft_wrap=True)
