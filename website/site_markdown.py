"""Markdown as the site's parser reads it: lists as on GitHub, and texts that hold no markup."""

import re

_ITEM = re.compile(r"( *)([-*+]|\d+\.)( +)\S")

_FENCE = re.compile(r" *```")

INDENT = 4
"""Columns by which the site's parser wants the content of a list item indented."""


def indent_lists(markdown: str) -> str:
    """Return a page with the content of lists indented by four columns a level.

    On GitHub the content of an item begins where its text does, and a list may follow a
    paragraph without an empty line.
    """
    lines: list[str] = []
    columns: list[int] = []  # where the text of each open item begins
    in_code = False
    for line in markdown.splitlines():
        column = len(line) - len(line.lstrip(" "))
        item = None if in_code else _ITEM.match(line)
        if line.strip() and not in_code:
            follows_paragraph = not columns and bool(lines) and bool(lines[-1].strip())
            columns = [one for one in columns if one <= column]
            if item and follows_paragraph:
                lines.append("")
        outer = columns[-1] if columns else 0
        shift = INDENT * len(columns) - outer if columns else 0
        lines.append(" " * shift + line if line.strip() else line)
        if item:
            columns.append(len(item[1]) + len(item[2]) + len(item[3]))
        if _FENCE.match(line):
            in_code = not in_code
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return a text of a docstring as Markdown that shows it as it is.

    Parts in backticks and lines indented as code stay what they are.
    """
    return "\n".join(
        line if line.startswith(" " * INDENT) else _escape(line) for line in text.splitlines()
    )


def _escape(line: str) -> str:
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(
        part if part.startswith("`") else part.replace("<", "&lt;").replace("*", r"\*")
        for part in parts
    )


def cell(text: str) -> str:
    """Return a text as one cell of a table."""
    return plain(" ".join(text.split())).replace("|", r"\|")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table; its cells are Markdown already."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter and ends with a full stop.

    >>> sentence("the data set")
    'The data set.'
    """
    end = "" if text.endswith((".", ":")) else "."
    return text[:1].upper() + text[1:] + end if text else ""
