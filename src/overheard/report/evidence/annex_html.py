"""The annex as a page that works offline and without scripts."""

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from importlib.resources import files

from overheard.drawing.figures import ReportTable
from overheard.report.evidence.annex import Annex


def annex_as_html(annex: Annex) -> str:
    """Return the annex as HTML, with all text escaped; the page may load nothing."""
    return "\n".join(_lines(annex)) + "\n"


def _lines(annex: Annex) -> Iterator[str]:
    style = files("overheard.report.evidence").joinpath("annex.css").read_text("utf-8")
    digest = b64encode(sha256(style.encode("utf-8")).digest()).decode("ascii")
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield (
        '<meta http-equiv="Content-Security-Policy" '
        f"content=\"default-src 'none'; style-src 'sha256-{digest}'\">"
    )
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(annex.title)}</title>\n<style>{style}</style>\n</head>"
    yield "<body>\n<main>"
    yield f"<h1>{escape(annex.title)}</h1>"
    yield f"<p>Made on {escape(annex.made_on)}.</p>"
    yield from (f"<p>{escape(paragraph)}</p>" for paragraph in annex.introduction)
    for section in annex.sections:
        yield f"<section>\n<h2>{escape(section.title)}</h2>"
        for block in section.blocks:
            if block.heading:
                yield f"<h3>{escape(block.heading)}</h3>"
            yield from (f"<p>{escape(paragraph)}</p>" for paragraph in block.paragraphs)
            for table in block.tables:
                yield _table(table, heading=block.heading)
        yield "</section>"
    yield "</main>\n</body>\n</html>"


def _table(table: ReportTable, heading: str) -> str:
    """Return a table; a heading with the same words as its caption stands in for it."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.headers)
    body = "\n".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows
    )
    # A wide table scrolls by itself; the focus lets the keyboard scroll it.
    name = escape(table.caption)
    caption = "" if table.caption == heading else f"<caption>{name}</caption>\n"
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{name}">\n<table>\n'
        f"{caption}<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )
