"""The annex as a PDF, with text that can be searched and copied."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import final

from fpdf import FPDF, XPos, YPos
from fpdf.fonts import FontFace, TTFFont
from matplotlib import get_data_path

from overheard.drawing.figures import ReportTable
from overheard.report.evidence.annex import Annex

FONT = "DejaVu"

FONT_FILES = {"": "DejaVuSans.ttf", "B": "DejaVuSans-Bold.ttf"}
"""The fonts that matplotlib brings, by style; "B" = bold."""

TITLE, SECTION_TITLE, BLOCK_TITLE, BODY, CAPTION, CELL = 15.0, 12.0, 10.0, 9.0, 8.0, 7.5
"""Font sizes in points."""

LINE_HEIGHT = 0.48
"""Millimetres from line to line, for each point of the font size."""

MARGIN, PADDING = 18.0, 1.2
"""Space at the edges of the page and of a table's cell, in millimetres."""

BELOW_TITLE, BELOW_CAPTION = 45.0, 30.0
"""Millimetres that must be left on a page from there on, so that neither stands at its end."""

LONGEST_CHUNK = 400
"""Most characters of a cell in one row; longer texts go on in the next, as a row must fit."""


def annex_as_pdf(annex: Annex) -> bytes:
    """Return the annex as a PDF of A4 pages; the same annex gives the same bytes."""
    pages = _AnnexPages(annex)
    for section in annex.sections:
        pages.add_title(section.title, SECTION_TITLE, level=0)
        for block in section.blocks:
            if block.heading:
                pages.add_title(block.heading, BLOCK_TITLE, level=1)
            for paragraph in block.paragraphs:
                pages.add_text(paragraph, BODY)
            for table in block.tables:
                if table.caption != block.heading:
                    pages.add_caption(table.caption)
                pages.add_table(table)
    return bytes(pages.output())


@final
class _AnnexPages(FPDF):
    """Pages with a footer; the title and the introduction are on the first."""

    def __init__(self, annex: Annex) -> None:
        super().__init__(format="A4")
        for style, name in FONT_FILES.items():
            self.add_font(FONT, style, Path(get_data_path()) / "fonts" / "ttf" / name)
        fonts = (font for font in self.fonts.values() if isinstance(font, TTFFont))
        self._characters = frozenset.intersection(*(frozenset(font.cmap) for font in fonts))
        self._title = self._drawable(annex.title)
        self.set_title(self._title)
        self.set_creator("Overheard")
        self.set_lang("en")
        # That of the annex, so that the bytes are reproducible.
        self.set_creation_date(datetime.fromisoformat(annex.made_on))
        self.set_margin(MARGIN)
        self.set_auto_page_break(True, MARGIN)
        self.set_draw_color(138)
        self.set_line_width(0.2)
        self.add_page()
        self.add_text(annex.title, TITLE, style="B")
        for paragraph in (f"Made on {annex.made_on}.", *annex.introduction):
            self.add_text(paragraph, BODY)

    def footer(self) -> None:
        """Print the title and the number of the page at its bottom."""
        self.set_y(-MARGIN / 2 - 3)
        self.set_font(FONT, "", CELL)
        number = f"Page {self.page_no()} of {{nb}}"
        width = self.epw - self.get_string_width(number) - 8
        shown = self._title
        while self.get_string_width(shown) > width:
            shown = f"{shown[:-2]}…"
        self.cell(width, text=shown)
        self.cell(0, text=number, align="R")

    def add_title(self, text: str, size: float, *, level: int) -> None:
        """Add a title of a section, which is in the outline too."""
        self._need(BELOW_TITLE)
        self.ln(size * LINE_HEIGHT)
        self.start_section(self._drawable(text), level)
        self.add_text(text, size, style="B")

    def add_caption(self, text: str) -> None:
        """Add the name of the table that follows."""
        self._need(BELOW_CAPTION)
        self.add_text(text, CAPTION, style="B")

    def add_text(self, text: str, size: float, *, style: str = "") -> None:
        """Add a title or a paragraph."""
        self.set_font(FONT, style, size)
        self.multi_cell(
            0,
            size * LINE_HEIGHT,
            self._drawable(text),
            align="L",
            new_x=XPos.LMARGIN,
            new_y=YPos.NEXT,
        )
        self.ln(1.5)

    def add_table(self, table: ReportTable) -> None:
        """Add a table; its headers are repeated on each page."""
        rows = [self._drawable_cells(row) for row in (table.headers, *table.rows)]
        self.set_font(FONT, "", CELL)
        with self.table(
            col_widths=self._column_widths(rows),
            align="L",
            text_align="L",
            v_align="T",
            line_height=CELL * LINE_HEIGHT,
            padding=PADDING,
            headings_style=FontFace(emphasis="B", fill_color=(238, 241, 244)),
        ) as drawn:
            for row in rows:
                for chunk in _row_chunks(row):
                    drawn.row(chunk)
        self.ln(2.5)

    def _column_widths(self, rows: Sequence[Sequence[str]]) -> tuple[float, ...]:
        """Return widths that fill the page: the longest words, and more for long texts."""
        least, wishes = [], []
        for cells in zip(*rows, strict=True):
            words = (self.get_string_width(word) for cell in cells for word in cell.split())
            # Bold headers are wider. A very long word is cut, lest it takes the page.
            word = min(1.15 * max(words, default=0.0), self.epw / len(rows[0]))
            whole = 1.15 * max(map(self.get_string_width, cells))
            least.append(word + 3 * PADDING)
            wishes.append(max(whole - word, 0.0) ** 0.5)
        spare, total = max(self.epw - sum(least), 0.0), sum(wishes) or 1.0
        return tuple(
            low + spare * wish / total for low, wish in zip(least, wishes, strict=True)
        )

    def _need(self, height: float) -> None:
        if self.will_page_break(height):
            self.add_page()

    def _drawable_cells(self, cells: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._drawable(cell) for cell in cells)

    def _drawable(self, text: str) -> str:
        """Return the text with characters that the font does not have as escape sequences."""
        return "".join(
            one if ord(one) in self._characters else one.encode("unicode_escape").decode()
            for one in text
        )


def _row_chunks(cells: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield a row, as several where a cell is long."""
    parts = [wrap(cell, LONGEST_CHUNK) or [""] for cell in cells]
    yield from zip_longest(*parts, fillvalue="")
