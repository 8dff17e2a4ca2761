"""HTML tables for notebooks, with all text escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from overheard.findings.names import shorten

MAX_LENGTH = 1000
"""Most characters of a text that are shown."""


def html_text(text: str) -> str:
    r"""Escape a text for HTML, and make unprintable characters visible.

    >>> html_text("<b>\u202e")
    '&lt;b&gt;\\u202e'
    """
    return escape(shorten(text, MAX_LENGTH))


def html_table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], note: str = ""
) -> str:
    """Write an HTML table.

    Args:
        title: caption of the table.
        heads: column heads; empty = no head.
        rows: cell texts, not escaped.
        note: text below the table.

    """
    head = f"<thead>{_line('th', heads)}</thead>" if heads else ""
    body = "".join(_line("td", row) for row in rows)
    below = f"<p>{html_text(note)}</p>" if note else ""
    caption = f"<caption>{html_text(title)}</caption>"
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>{below}"


def short_number(value: float | None) -> str:
    """Return a number with three digits; "" for None.

    >>> short_number(0.12345)
    '0.123'
    """
    return "" if value is None else f"{value:.3g}"


def _line(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html_text(cell)}</{tag}>' for cell in cells)}</tr>"
