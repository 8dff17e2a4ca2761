"""The annex as a PDF, with text that can be searched and copied."""

from io import BytesIO

from matplotlib import rc_context
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle

from overheard.report.evidence.annex import Annex
from overheard.report.evidence.page_layout import (
    BLOCK_TITLE,
    BODY,
    CAPTION,
    CELL,
    HEIGHT,
    MARGIN,
    SECTION_TITLE,
    TITLE,
    WIDTH,
    Page,
    PageLayout,
    drawable,
    font_path,
    wrap,
)

POINTS = 72
"""Points an inch."""


def annex_as_pdf(annex: Annex) -> bytes:
    """Return the annex as a PDF of A4 pages; the same annex gives the same bytes."""
    pages = _lay_out(annex).pages
    content = BytesIO()
    title = drawable(annex.title)
    # Without a date of creation, and with a fixed producer, the bytes are reproducible.
    facts = {"Title": title, "Creator": "Overheard", "Producer": None, "CreationDate": None}
    # TrueType fonts keep the text searchable; a dollar sign is no formula.
    settings = rc_context({"pdf.fonttype": 42, "text.parse_math": False, "text.usetex": False})
    with settings, PdfPages(content, metadata=facts) as pdf:
        for number, page in enumerate(pages, 1):
            pdf.savefig(_draw(page, title, f"Page {number} of {len(pages)}"))
    return content.getvalue()


def _lay_out(annex: Annex) -> PageLayout:
    layout = PageLayout()
    layout.add_text(annex.title, TITLE, before=0.0, after=6.0)
    for paragraph in (f"Made on {annex.made_on}.", *annex.introduction):
        layout.add_text(paragraph, BODY, before=0.0, after=5.0)
    for section in annex.sections:
        layout.add_text(section.title, SECTION_TITLE, before=14.0, after=5.0)
        for block in section.blocks:
            if block.heading:
                layout.add_text(block.heading, BLOCK_TITLE, before=7.0, after=3.0)
            for paragraph in block.paragraphs:
                layout.add_text(paragraph, BODY, before=0.0, after=5.0)
            for table in block.tables:
                if table.caption != block.heading:
                    layout.add_text(table.caption, CAPTION, before=3.0, after=3.0)
                layout.add_table(table.headers, table.rows)
    return layout


def _draw(page: Page, title: str, number: str) -> Figure:
    figure = Figure(figsize=(WIDTH / POINTS, HEIGHT / POINTS))
    for box in page.boxes:
        figure.add_artist(
            Rectangle(
                (box.left / WIDTH, box.bottom / HEIGHT),
                box.width / WIDTH,
                box.height / HEIGHT,
                transform=figure.transFigure,
                facecolor="#eef1f4" if box.is_filled else "none",
                edgecolor="#8a8a8a",
                linewidth=0.5,
            )
        )
    (short, *_) = wrap(title, WIDTH - 2 * MARGIN - 80, CELL)
    foot = MARGIN / 2
    for text, left, bottom, size, is_bold in (
        *(
            (line.text, line.left, line.baseline, line.style.size, line.style.is_bold)
            for line in page.lines
        ),
        (short, MARGIN, foot, CELL.size, False),
    ):
        figure.text(
            left / WIDTH, bottom / HEIGHT, text, fontproperties=_font(size, is_bold=is_bold)
        )
    figure.text(
        1 - MARGIN / WIDTH,
        foot / HEIGHT,
        number,
        ha="right",
        fontproperties=_font(CELL.size, is_bold=False),
    )
    return figure


def _font(size: float, *, is_bold: bool) -> FontProperties:
    return FontProperties(fname=font_path(is_bold=is_bold), size=size)
