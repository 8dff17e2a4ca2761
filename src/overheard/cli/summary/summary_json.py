"""The summary of an audit as JSON, for programs."""

import json
from pathlib import Path

from overheard.cli.summary.print_summary import AuditSummary
from overheard.findings.names import make_printable
from overheard.findings.threat_results import ThreatResult
from overheard.report.first_page.gain_bar import gain_bar

FORMAT = "overheard audit"

VERSION = 1
"""Increased whenever a reader of the previous version would misread a document."""


def summary_json(summary: AuditSummary, folder: Path) -> str:
    """Return what the terminal says of an audit; `findings.json` in its folder has all values.

    `learns` is the share of what guessing leaves open that the best attack learns (at most 1,
    below 0 = worse than guessing), with its 95 % interval; null = no score.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "target": make_printable(str(folder)),
        "exit_code": 0,
        "first": list(map(make_printable, summary.first)),
        "results": [_entry(one) for arm in summary.arm_results for one in arm.threat_results],
        "further": list(map(make_printable, summary.further)),
        "report": make_printable(str(folder / "report.html")),
        "findings": make_printable(str(folder / "findings.json")),
    }
    return json.dumps(document, indent=1) + "\n"


def _entry(result: ThreatResult) -> dict[str, object]:
    bar = gain_bar(result)
    return {
        "arm": make_printable(result.arm),
        "threat": make_printable(result.title),
        "question": make_printable(result.question),
        "verdict": result.verdict,
        "learns": None if bar is None else bar.mean,
        "interval": None if bar is None or bar.low is None else [bar.low, bar.high],
    }
