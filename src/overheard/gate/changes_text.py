"""What changed between two audits, as Markdown and as JSON."""

import json

from overheard.findings.machine_formats import MAX_LENGTH
from overheard.findings.names import shorten
from overheard.gate.audit_changes import AuditChange, AuditChanges
from overheard.gate.markdown import escape_markdown

FORMAT = "overheard comparison"

VERSION = 1
"""Increased whenever a reader of the previous version would misread a document."""

HEADERS = ("what", "subject", "before", "after", "remark")


def changes_as_markdown(found: AuditChanges) -> str:
    """Return a heading, a table with one row per change, and the notes."""
    lines = [
        f"## Overheard: {found.summary}",
        "",
        f"From “{escape_markdown(found.before)}” to “{escape_markdown(found.after)}”.",
    ]
    if found.changes:
        heads = (f"| {' | '.join(HEADERS)} |", f"|{'---|' * len(HEADERS)}")
        lines += ["", *heads, *map(_table_row, found.changes)]
    lines += [part for note in found.notes for part in ("", escape_markdown(note))]
    return "\n".join(lines) + "\n"


def changes_as_json(found: AuditChanges) -> str:
    """Return the changes as JSON, with the difference and its range for figures."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "before": _plain(found.before),
        "after": _plain(found.after),
        "summary": found.summary,
        "compared": found.compared,
        "notes": list(map(_plain, found.notes)),
        "changes": list(map(_entry, found.changes)),
    }
    return json.dumps(document, indent=1) + "\n"


def change_cells(change: AuditChange) -> tuple[str, ...]:
    """Return the texts of a change in the order of `HEADERS`, safe to print on one line."""
    cells = (change.kind, change.subject, change.before, change.after, change.remark)
    return tuple(map(_plain, cells))


def _entry(change: AuditChange) -> dict[str, object]:
    kind, subject, before, after, remark = change_cells(change)
    difference = change.difference
    return {
        "kind": kind,
        "subject": subject,
        "before": before,
        "after": after,
        "remark": remark,
        "difference": None
        if difference is None
        else difference.model_dump(include={"mean", "low", "high"}),
    }


def _table_row(change: AuditChange) -> str:
    return f"| {' | '.join(map(escape_markdown, change_cells(change)))} |"


def _plain(text: str) -> str:
    return shorten(text, MAX_LENGTH)
