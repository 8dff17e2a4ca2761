"""The PDF is complete and reproducible, and stands unusual characters."""

import re

import pytest

from overheard.report.evidence.annex_pdf import annex_as_pdf
from overheard.report.evidence.officer import OfficerWords
from tests.report.evidence.annexes import annex_of


@pytest.fixture(scope="module")
def pdf() -> bytes:
    """The PDF of small findings."""
    return annex_as_pdf(annex_of())


@pytest.mark.slow
def test_is_a_pdf_with_searchable_text_and_no_date(pdf: bytes) -> None:
    assert pdf.startswith(b"%PDF-")
    assert pdf.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", pdf)) > 1
    assert b"/FontFile2" in pdf  # a TrueType font, from which text can be copied
    assert b"/ToUnicode" in pdf
    assert b"CreationDate" not in pdf


@pytest.mark.slow
def test_the_same_annex_gives_the_same_bytes(pdf: bytes) -> None:
    assert annex_as_pdf(annex_of()) == pdf


@pytest.mark.slow
def test_stands_formulas_and_characters_that_no_font_has() -> None:
    words = OfficerWords(residual_risk="$x_1$ \u4e2d\u6587 \U0001f9ec ε δ \\frac{1}{2} %PDF (a")
    assert annex_as_pdf(annex_of(words, title="two $ signs $")).startswith(b"%PDF-")
