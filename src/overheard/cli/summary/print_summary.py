"""Prints what an audit found: the first lines of the page, its table, and what comes next."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import final

from rich.console import Console
from rich.text import Text

from overheard.cli.summary.thumbnail import as_encodable, print_thumbnail
from overheard.cli.terminal import escaped_text
from overheard.findings.threat_results import ArmResult


@final
@dataclass(frozen=True, slots=True)
class AuditSummary:
    """What a terminal says of an audit.

    Args:
        first: the first lines of the page.
        arm_results: the results that bars are drawn of.
        further: what was not measured, what was read of the data, and where pictures are.

    """

    first: tuple[str, ...]
    arm_results: Sequence[ArmResult]
    further: tuple[str, ...]


def print_summary(summary: AuditSummary, folder: Path, console: Console) -> None:
    """Print the summary of an audit, where its report is, and the next command."""
    for sentence in summary.first:
        console.print(escaped_text(as_encodable(sentence, console)))
    print_thumbnail(summary.arm_results, console)
    for sentence in summary.further:
        console.print(escaped_text(as_encodable(sentence, console)))
    console.print(Text(f"The report: {folder / 'report.html'}", style="bold"))
    # Without wrapping, so that the command can be copied.
    command = f"overheard evidence {quote(str(folder))}"
    console.print(
        escaped_text(f"Evidence for a data-protection file: {command}"), soft_wrap=True
    )
