"""The annex as Markdown."""

from collections.abc import Iterator

from overheard.drawing.figures import ReportTable
from overheard.findings.markdown import escape_markdown
from overheard.report.evidence.annex import Annex


def annex_as_markdown(annex: Annex) -> str:
    """Return the annex as Markdown, in which all text is shown literally."""
    return "\n".join(_lines(annex)) + "\n"


def _lines(annex: Annex) -> Iterator[str]:
    yield f"# {escape_markdown(annex.title)}"
    for paragraph in (f"Made on {annex.made_on}.", *annex.introduction):
        yield f"\n{escape_markdown(paragraph)}"
    for section in annex.sections:
        yield f"\n## {escape_markdown(section.title)}"
        for block in section.blocks:
            if block.heading:
                yield f"\n### {escape_markdown(block.heading)}"
            for paragraph in block.paragraphs:
                yield f"\n{escape_markdown(paragraph)}"
            for table in block.tables:
                if table.caption != block.heading:
                    yield f"\n{escape_markdown(table.caption)}:"
                yield from _table_lines(table)


def _table_lines(table: ReportTable) -> Iterator[str]:
    yield f"\n{_row(table.headers)}"
    yield f"|{'---|' * len(table.headers)}"
    yield from map(_row, table.rows)


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(map(escape_markdown, cells))} |"
