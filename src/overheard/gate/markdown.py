"""The verdicts as Markdown, for example for the summary of a pipeline."""

import re

from overheard.findings.machine_formats import MAX_LENGTH
from overheard.findings.names import shorten
from overheard.gate.judged_findings import CheckResult
from overheard.gate.verdict import RuleVerdict

_MARKUP = re.compile(r"[!-'*+/;<-@\[-`{-~]|:(?! |$)|(?<=www)\.", re.IGNORECASE)
"""Characters that Markdown, HTML or GitHub may interpret, names of sites included."""

_TABLE_HEADER = """\
| status | rule | subject | score | value (95 % interval) | limit | reason |
|---|---|---|---|---|---|---|"""


def as_markdown(checked: CheckResult) -> str:
    """Return a heading, a table with one row per verdict, and the notes."""
    lines = [
        f"## Overheard: {checked.summary}",
        "",
        f"Audit: “{escape_markdown(checked.title)}”.",
        "",
        _TABLE_HEADER,
        *map(_table_row, checked.verdicts),
        *(part for note in checked.notes for part in ("", escape_markdown(note))),
    ]
    return "\n".join(lines) + "\n"


def _table_row(verdict: RuleVerdict) -> str:
    status = verdict.status if verdict.status == "pass" else f"**{verdict.status}**"
    cells = (
        *(verdict.rule, verdict.subject, verdict.score),
        *(verdict.figure_text, verdict.limit, verdict.why),
    )
    return f"| {status} | {' | '.join(map(escape_markdown, cells))} |"


def escape_markdown(text: str) -> str:
    r"""Escape and shorten text so that Markdown shows it literally, on one line.

    >>> print(escape_markdown("a|b <i>_x_"))
    a\|b \<i\>\_x\_
    """
    return _MARKUP.sub(r"\\\g<0>", shorten(text, MAX_LENGTH))
