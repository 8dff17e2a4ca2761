"""Layout of text and tables on A4 pages: lines with their places, to be drawn by a writer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import final

from matplotlib import get_data_path
from matplotlib.ft2font import FT2Font, LoadFlags

WIDTH, HEIGHT = 595.28, 841.89
"""A4 in points."""

MARGIN = 51.0

TEXT_WIDTH = WIDTH - 2 * MARGIN

LEADING = 1.35
"""Distance of lines, in font sizes."""

PADDING = 3.5
"""Space between a cell's text and its borders, in points."""

FONT_FILES = {False: "DejaVuSans.ttf", True: "DejaVuSans-Bold.ttf"}
"""The fonts that matplotlib brings, by whether they are bold."""

MOST_LINES_BELOW = 20
"""Most lines of a table's first row that must fit below its header; longer rows are divided."""

MAX_CELL = 1500
"""Longest text of a cell, in characters."""


@final
@dataclass(frozen=True, slots=True)
class TextStyle:
    """A font size in points, and whether the font is bold."""

    size: float
    is_bold: bool = False

    @property
    def line_height(self) -> float:
        """The height of a line, in points."""
        return LEADING * self.size


TITLE = TextStyle(15.0, is_bold=True)
SECTION_TITLE = TextStyle(12.0, is_bold=True)
BLOCK_TITLE = TextStyle(10.0, is_bold=True)
BODY = TextStyle(9.0)
CAPTION = TextStyle(8.0, is_bold=True)
HEADER = TextStyle(7.5, is_bold=True)
CELL = TextStyle(7.5)

LINES_BELOW = {TITLE: 13, SECTION_TITLE: 13, BLOCK_TITLE: 13, CAPTION: 10}
"""Lines that must fit on a page from a title on: itself, a caption and the start of a table."""


@final
@dataclass(frozen=True, slots=True)
class PlacedLine:
    """A line of text; `left` and `baseline` in points from the page's lower left corner."""

    text: str
    left: float
    baseline: float
    style: TextStyle


@final
@dataclass(frozen=True, slots=True)
class PlacedBox:
    """The box of a table cell, in points from the page's lower left corner."""

    left: float
    bottom: float
    width: float
    height: float
    is_filled: bool


@final
@dataclass(frozen=True, slots=True)
class Page:
    """What is on one page."""

    lines: list[PlacedLine] = field(default_factory=list)
    boxes: list[PlacedBox] = field(default_factory=list)


def drawable(text: str) -> str:
    r"""Return the text with characters that the font does not have as escape sequences.

    >>> drawable("ε = 2 \u4e2d")
    'ε = 2 \\u4e2d'
    """
    known = _characters()
    return "".join(
        one if ord(one) in known else one.encode("unicode_escape").decode("ascii")
        for one in text
    )


def wrap(text: str, width: float, style: TextStyle) -> tuple[str, ...]:
    """Break the text into lines of at most this width in points; long words are cut."""
    lines, line = list[str](), ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if text_width(longer, style) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        *full, line = _cut(word, width, style)
        lines += full
    return (*lines, line)


def text_width(text: str, style: TextStyle) -> float:
    """Return the width of a line of text, in points."""
    return sum(_advance(character, style.is_bold) for character in text) * style.size


def font_path(*, is_bold: bool) -> Path:
    """Return the file of the font in which text is measured and drawn."""
    return Path(get_data_path()) / "fonts" / "ttf" / FONT_FILES[is_bold]


@final
class PageLayout:
    """Places titles, paragraphs and tables on pages, from the top to the bottom."""

    def __init__(self) -> None:
        self.pages = [Page()]
        self._top = HEIGHT - MARGIN

    def add_text(self, text: str, style: TextStyle, *, before: float, after: float) -> None:
        """Add a title or a paragraph, with space before and after it in points.

        A title is not left alone at the end of a page.
        """
        lines = wrap(drawable(text), TEXT_WIDTH, style)
        needed = LINES_BELOW.get(style, 1)
        follows = needed * BODY.line_height
        if self._top - before - follows < MARGIN:
            self._begin_page()
        elif self._top < HEIGHT - MARGIN:
            self._top -= before
        for line in lines:
            if self._top - style.line_height < MARGIN:
                self._begin_page()
            self._place(line, MARGIN, self._top, style)
            self._top -= style.line_height
        self._top -= after

    def add_table(self, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Add a table; its headers are repeated on each page."""
        head = [drawable(cell) for cell in headers]
        body = [[drawable(cell[:MAX_CELL]) for cell in row] for row in rows]
        widths = _column_widths(head, body)
        # The header is not left alone at the end of a page.
        first = max(map(len, _wrap_cells(body[0], widths, CELL))) if body else 0
        below = min(first, MOST_LINES_BELOW) * CELL.line_height + 2 * PADDING
        if self._top - 3 * HEADER.line_height - below < MARGIN:
            self._begin_page()
        self._add_row(head, widths, HEADER, None)
        for row in body:
            self._add_row(row, widths, CELL, head)
        self._top -= 8.0

    def _add_row(
        self,
        cells: Sequence[str],
        widths: Sequence[float],
        style: TextStyle,
        head: Sequence[str] | None,
    ) -> None:
        """Add a row; what does not fit on the page goes on at the top of the next."""
        wrapped = _wrap_cells(cells, widths, style)
        count = max(map(len, wrapped))
        page_rows = int((HEIGHT - 2 * MARGIN - 60.0) / style.line_height)
        for first in range(0, count, page_rows):
            part = [lines[first : first + page_rows] for lines in wrapped]
            height = max(map(len, part)) * style.line_height + 2 * PADDING
            needed = height if head is not None else height + 4 * CELL.line_height
            if self._top - needed < MARGIN:
                self._begin_page()
                if head is not None:
                    self._add_row(head, widths, HEADER, None)
            self._place_row(part, widths, style, height, is_filled=head is None)

    def _place_row(
        self,
        cells: Sequence[Sequence[str]],
        widths: Sequence[float],
        style: TextStyle,
        height: float,
        *,
        is_filled: bool,
    ) -> None:
        left = MARGIN
        for lines, width in zip(cells, widths, strict=True):
            box = PlacedBox(left, self._top - height, width, height, is_filled)
            self.pages[-1].boxes.append(box)
            for number, line in enumerate(lines):
                top = self._top - PADDING - number * style.line_height
                self._place(line, left + PADDING, top, style)
            left += width
        self._top -= height

    def _place(self, text: str, left: float, top: float, style: TextStyle) -> None:
        if text:
            line = PlacedLine(text, left, top - style.size, style)
            self.pages[-1].lines.append(line)

    def _begin_page(self) -> None:
        self.pages.append(Page())
        self._top = HEIGHT - MARGIN


def _wrap_cells(
    cells: Sequence[str], widths: Sequence[float], style: TextStyle
) -> Sequence[tuple[str, ...]]:
    """Return the lines of each cell of a row."""
    return [
        wrap(cell, width - 2 * PADDING, style)
        for cell, width in zip(cells, widths, strict=True)
    ]


def _column_widths(head: Sequence[str], body: Sequence[Sequence[str]]) -> Sequence[float]:
    """Return widths that fill the page: those of the longest words, and more for long texts."""
    natural, least = [], []
    for number, title in enumerate(head):
        cells = [(title, HEADER), *((row[number], CELL) for row in body)]
        widths = [text_width(cell, style) for cell, style in cells]
        words = [text_width(w, style) for cell, style in cells for w in cell.split(" ")]
        natural.append(max(widths) + 2 * PADDING)
        # Words may be cut, so that one long word does not take the page.
        least.append(min(max(words), TEXT_WIDTH / len(head)) + 2 * PADDING)
    spare = TEXT_WIDTH - sum(least)
    if spare < 0:
        return [TEXT_WIDTH * width / sum(least) for width in least]
    wishes = [max(n - low, 0.0) ** 0.5 for n, low in zip(natural, least, strict=True)]
    total = sum(wishes) or 1.0
    return [low + spare * wish / total for low, wish in zip(least, wishes, strict=True)]


def _cut(word: str, width: float, style: TextStyle) -> Sequence[str]:
    parts = [""]
    for character in word:
        longer = parts[-1] + character
        if parts[-1] and text_width(longer, style) > width:
            parts.append(character)
        else:
            parts[-1] = longer
    return parts


@lru_cache(maxsize=4096)
def _advance(character: str, is_bold: bool) -> float:
    """Return the width of a character, in font sizes."""
    glyph = _font(is_bold).load_char(ord(character), LoadFlags.NO_SCALE)
    return float(glyph.horiAdvance / _font(is_bold).units_per_EM)


@cache
def _font(is_bold: bool) -> FT2Font:
    return FT2Font(font_path(is_bold=is_bold))


@cache
def _characters() -> frozenset[int]:
    """Return the characters that both fonts have."""
    return frozenset(_font(False).get_charmap()) & frozenset(_font(True).get_charmap())
