"""Small tables of HTML, for a notebook, in which no name from data acts as markup."""

from collections.abc import Iterable, Sequence
from html import escape

from overheard.findings.names import shortened

LONGEST = 1000
"""Characters of a text that are shown."""


def html_text(text: str) -> str:
    r"""The text as a page shows it letter by letter.

    >>> html_text("<b>\u202e")
    '&lt;b&gt;\\u202e'
    """
    return escape(shortened(text, LONGEST))


def html_table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], note: str = ""
) -> str:
    """A table with a line a row.

    Args:
        title: above it.
        heads: of the columns; none = the table has no head.
        rows: texts, as they are: all of them are escaped here.
        note: below it.

    """
    head = f"<thead>{_line('th', heads)}</thead>" if heads else ""
    body = "".join(_line("td", row) for row in rows)
    below = f"<p>{html_text(note)}</p>" if note else ""
    caption = f"<caption>{html_text(title)}</caption>"
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>{below}"


def _line(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html_text(cell)}</{tag}>' for cell in cells)}</tr>"
