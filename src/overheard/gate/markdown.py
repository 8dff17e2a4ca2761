"""The verdicts as a page of Markdown, such as a pipeline's summary."""

import re

from overheard.findings.names import shortened
from overheard.gate.check import Checked
from overheard.gate.verdict import LONGEST, Verdict

_HEAD = """\
| status | rule | of | score | figure (95 % interval) | limit | why |
|---|---|---|---|---|---|---|"""


def as_markdown(checked: Checked) -> str:
    """A heading, a table with a line a verdict, what to know when reading it."""
    lines = [
        f"## Overheard: {checked.told}",
        "",
        f"Of the audit “{_inert(checked.title)}”.",
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
"""What Markdown, HTML or GitHub may take for more than a letter, names of sites included."""


def _inert(text: str) -> str:
    r"""The text as Markdown shows it letter by letter.

    >>> print(_inert("a|b <i>_x_"))
    a\|b \<i\>\_x\_
    """
    return _MARKUP.sub(r"\\\g<0>", shortened(text, LONGEST))
