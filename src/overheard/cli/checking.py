"""Checks findings against a policy or a reference, and prints and writes the verdicts."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import final

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from overheard.cli.terminal import escaped_text
from overheard.core.errors import OutputError, PlanError
from overheard.disk.reading import read_text
from overheard.disk.writing import write_new_text, write_text
from overheard.findings.document import FindingsDocument, read_findings
from overheard.findings.machine_formats import MAX_LENGTH
from overheard.findings.names import shorten
from overheard.gate.audit_changes import BEYOND, AuditChanges
from overheard.gate.changes_text import HEADERS, change_cells
from overheard.gate.judged_findings import CheckResult, judge_findings
from overheard.gate.markdown import as_markdown
from overheard.gate.policy import Policy, read_policy
from overheard.gate.reference_policy import policy_like, policy_text, reference_note
from overheard.gate.rule_sources import RuleSources, find_rule_sources
from overheard.gate.verdict import Status
from overheard.gate.verdict_formats import as_check_json, as_junit, as_sarif

EXIT_CODES: dict[Status, int] = {"pass": 0, "fail": 1, "inconclusive": 2}
"""The exit code of the command; a whole policy is never excused."""

VERDICT_HEADERS = ("subject", "value (95 %)", "limit", "reason")

_STYLES: dict[Status, str] = {
    "pass": "green",
    "fail": "bold red",
    "inconclusive": "bold yellow",
    "excused": "dim",
    "excepted": "yellow",
}


@final
@dataclass(frozen=True, slots=True)
class Reference:
    """A reference audit that makes the policy.

    Args:
        findings: its findings.json.
        tolerance: how much worse a score may be; None = the margins of the reference.
        policy: where to write the policy; None = nowhere.

    """

    findings: Path
    tolerance: float | None
    policy: Path | None


@final
@dataclass(frozen=True, slots=True)
class CheckOutputs:
    """What to write and print; None = no such file.

    Args:
        sarif: file for SARIF.
        junit: file for JUnit XML.
        markdown: file for Markdown.
        json: whether to print JSON instead of tables.
        quiet: whether to print no tables.

    """

    sarif: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    json: bool = False
    quiet: bool = False


def run_check(
    findings: Path,
    policy: Path | None,
    reference: Reference | None,
    against: Path | None,
    outputs: CheckOutputs,
) -> int:
    """Check findings, write and print the verdicts, and return the exit code.

    Args:
        findings: the findings to judge.
        policy: the file of the policy; None = the reference makes it.
        reference: the reference audit; None = the policy is a file.
        against: earlier findings, for rules on growth; None = none.
        outputs: what to write and print.

    Raises:
        AuditError: if a file is invalid, or would be overwritten.

    """
    made = (None,) if reference is None else (reference.findings,)
    kept = None if reference is None else reference.policy
    refuse_to_overwrite(
        (findings, policy, against, *made),
        (outputs.sarif, outputs.junit, outputs.markdown, kept),
    )
    if kept is not None and kept.exists():
        raise _existing_policy(kept)
    now = read_findings(findings)
    before = None if against is None else read_findings(against)
    rules, sources, notes = _rules(policy, reference, now)
    checked = judge_findings(rules, now, before, datetime.now(UTC).date())
    checked = replace(checked, notes=(*checked.notes, *notes))
    code = EXIT_CODES[checked.status]
    if outputs.sarif is not None:
        _write_named(outputs.sarif, as_sarif(checked, rules, sources))
    if outputs.junit is not None:
        _write_named(outputs.junit, as_junit(checked))
    if outputs.markdown is not None:
        _write_named(outputs.markdown, as_markdown(checked))
    if outputs.json:
        typer.echo(as_check_json(checked, rules, sources, code), nl=False)
    elif not outputs.quiet:
        print_check_result(checked, Console(highlight=False))
    return code


def _write_named(path: Path, text: str) -> None:
    """Write a file that the user named."""
    write_text(path, text, inside=path.parent, is_private=False)


def _existing_policy(path: Path) -> OutputError:
    return OutputError(f"{path}: exists: move it, or use it with --policy, to keep edits")


def sarif_of(found: FindingsDocument, policy: Path) -> str:
    """Return what does not pass in findings as SARIF; of the policy's path only the name.

    Raises:
        PlanError: if the policy is invalid.

    """
    rules = read_policy(policy)
    sources = find_rule_sources(rules, Path(policy.name), read_text(policy, PlanError))
    checked = judge_findings(rules, found, None, datetime.now(UTC).date())
    return as_sarif(checked, rules, sources)


def _rules(
    policy: Path | None, reference: Reference | None, now: FindingsDocument
) -> tuple[Policy, RuleSources, tuple[str, ...]]:
    """Return the rules, where they are written, and notes on them."""
    if reference is None:
        assert policy is not None, "either a policy or a reference is given"
        rules = read_policy(policy)
        return rules, find_rule_sources(rules, policy, read_text(policy, PlanError)), ()
    found = read_findings(reference.findings)
    made = policy_like(found, reference.findings, reference.tolerance)
    note = reference_note(found, now)
    notes = (*made.origin[:-1], *made.warnings, *([note] if note else []))
    if reference.policy is None:
        return made.policy, RuleSources(reference.findings), notes
    text = policy_text(made)
    folder = reference.policy.parent
    if not write_new_text(reference.policy, text, inside=folder, is_private=False):
        raise _existing_policy(reference.policy)
    return made.policy, find_rule_sources(made.policy, reference.policy, text), notes


def refuse_to_overwrite(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Refuse to write a file twice or to overwrite an input; None = no file.

    Raises:
        OutputError: if a path is given twice.

    """
    used = {os.path.realpath(path) for path in read if path is not None}
    for path in (path for path in written if path is not None):
        if os.path.realpath(path) in used:
            raise OutputError(
                f"{path}: is given twice: choose a different path for each output"
            )
        used.add(os.path.realpath(path))


def print_check_result(checked: CheckResult, console: Console) -> None:
    """Print one table per rule with one row per verdict, the notes and the overall status."""
    for (rule, score), verdicts in groupby(checked.verdicts, lambda one: (one.rule, one.score)):
        table = Table(
            Column("status", no_wrap=True),
            *(Column(head, overflow="fold") for head in VERDICT_HEADERS),
            box=SIMPLE_HEAD,
            title=_escaped(f"{rule}: {score}"),
            title_justify="left",
            title_style="bold",
        )
        for verdict in verdicts:
            table.add_row(
                Text(verdict.status, style=_STYLES[verdict.status]),
                *map(
                    _escaped, (verdict.subject, verdict.figure_text, verdict.limit, verdict.why)
                ),
            )
        console.print(table)
    for note in checked.notes:
        console.print(_escaped(note))
    console.print(Text(checked.summary, style=_STYLES[checked.status]))


def _escaped(text: str) -> Text:
    return Text(shorten(text, MAX_LENGTH))


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
