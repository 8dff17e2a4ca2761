"""Prints what changed between two audits."""

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from overheard.cli.terminal import escaped_text
from overheard.gate.audit_changes import BEYOND, AuditChanges
from overheard.gate.changes_text import HEADERS, change_cells


def findings_path(given: Path) -> Path:
    """Return the findings of an audit, given its folder or the file itself."""
    return given / "findings.json" if given.is_dir() else given


def print_changes(found: AuditChanges, console: Console) -> None:
    """Print a table with one row per change, the notes and the counts."""
    if found.changes:
        table = Table(*(Column(head, overflow="fold") for head in HEADERS), box=SIMPLE_HEAD)
        for change in found.changes:
            style = "bold yellow" if change.remark == BEYOND else ""
            table.add_row(*(Text(cell, style=style) for cell in change_cells(change)))
        console.print(table)
    for note in found.notes:
        console.print(escaped_text(note))
    console.print(Text(found.summary, style="bold"))
