"""The verdicts as Markdown, for example for the summary of a pipeline."""

import re

from overheard.findings.names import shorten
from overheard.gate.check import Checked
from overheard.gate.verdict import LONGEST, Verdict

_HEAD = """\
| status | rule | subject | score | value (95 % interval) | limit | reason |
|---|---|---|---|---|---|---|"""


def as_markdown(checked: Checked) -> str:
    """Return a heading, a table with one row per verdict, and the notes."""
    lines = [
        f"## Overheard: {checked.told}",
        "",
        f"Audit: “{_inert(checked.title)}”.",
        "",
        _HEAD,
        *map(_line, checked.verdicts),
        *(part for note in checked.notes for part in ("", _inert(note))),
    ]
    return "\n".join(lines) + "\n"


def _line(verdict: Verdict) -> str:
    status = verdict.status if verdict.status == "pass" else f"**{verdict.status}**"
    cells = (
        *(verdict.rule, verdict.what, verdict.score),
        *(verdict.told_figure, verdict.limit, verdict.why),
    )
    return f"| {status} | {' | '.join(map(_inert, cells))} |"


_MARKUP = re.compile(r"[!-'*+/;<-@\[-`{-~]|:(?! |$)|(?<=www)\.", re.IGNORECASE)
"""Characters that Markdown, HTML or GitHub may interpret, names of sites included."""


def _inert(text: str) -> str:
    r"""Escape text so that Markdown shows it literally.

    >>> print(_inert("a|b <i>_x_"))
    a\|b \<i\>\_x\_
    """
    return _MARKUP.sub(r"\\\g<0>", shorten(text, LONGEST))
