"""The PDF is complete and reproducible, and stands unusual characters."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.report.evidence.annex import Annex
from overheard.report.evidence.annex_pdf import _row_chunks, annex_as_pdf
from overheard.report.evidence.annex_section import AnnexSection
from overheard.report.evidence.officer import OfficerWords
from tests.report.evidence.annexes import annex_of


@pytest.fixture(scope="module")
def pdf() -> bytes:
    """The PDF of small findings."""
    return annex_as_pdf(annex_of())


@pytest.mark.slow
def test_is_a_pdf_with_searchable_text_and_the_day_of_the_annex(pdf: bytes) -> None:
    assert pdf.startswith(b"%PDF-")
    assert pdf.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", pdf)) > 1
    assert b"/FontFile2" in pdf  # a TrueType font, from which text can be copied
    assert b"/ToUnicode" in pdf
    assert b"/CreationDate (D:20261122000000" in pdf


@pytest.mark.slow
def test_the_same_annex_gives_the_same_bytes(pdf: bytes) -> None:
    assert annex_as_pdf(annex_of()) == pdf


@pytest.mark.slow
def test_stands_formulas_and_characters_that_no_font_has() -> None:
    words = OfficerWords(residual_risk="$x_1$ \u4e2d\u6587 \U0001f9ec ε δ \\frac{1}{2} %PDF (a")
    assert annex_as_pdf(annex_of(words, title="two $ signs $")).startswith(b"%PDF-")


def table_of(*rows: tuple[str, ...]) -> Annex:
    """An annex of one table."""
    headers = tuple(f"column {number}" for number in range(len(rows[0])))
    block = SectionBlock("", (), (ReportTable("Rows", headers, rows, len(headers)),))
    return Annex("Rows", "2026-11-22", (), (AnnexSection("Rows", (block,)),))


def count_pages(annex: Annex) -> int:
    """The number of pages of the PDF."""
    return len(re.findall(rb"/Type /Page\b", annex_as_pdf(annex)))


@pytest.mark.slow
def test_rows_that_are_taller_than_a_page_go_on_at_the_next() -> None:
    assert count_pages(table_of(("short",) * 8)) == 1
    # In columns of a few letters: a page has some 70 lines.
    assert count_pages(table_of(("long " * 600,) * 8)) > 3
    assert count_pages(table_of(("w" * 5000, "b"))) > 1


@given(st.lists(st.text("ab c", max_size=1500), min_size=1, max_size=3))
def test_a_divided_row_keeps_every_letter(cells: list[str]) -> None:
    chunks = list(_row_chunks(cells))
    for number, cell in enumerate(cells):
        parts = [chunk[number] for chunk in chunks]
        assert max(map(len, parts)) <= 400
        assert "".join(parts).replace(" ", "") == cell.replace(" ", "")
