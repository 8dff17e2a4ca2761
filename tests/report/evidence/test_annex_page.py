"""The annex as a browser shows it: offline, within the screen, with enough contrast."""

import warnings
from pathlib import Path

import pytest

from overheard.report.evidence.officer import OfficerWords
from overheard.report.evidence.write import annex_as_html
from tests.report.evidence.annexes import annex_of

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from tests.report.browsers import ARGUMENTS, BROWSER
from tests.report.test_page import LOW_CONTRAST, sync_api

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH")

CUT_WORDS = """() => [...document.querySelectorAll("th, td")].filter(cell => {
  if (/[ /]/.test(cell.textContent) || cell.textContent.length > 20) return false;
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getClientRects().length > 1;
}).map(cell => cell.textContent)"""
"""Cells of one word that is cut into two lines."""


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_loads_nothing_fits_and_is_readable(tmp_path: Path, width: int) -> None:
    words = OfficerWords(residual_risk="unbroken" * 80, contact="<script>alert(1)</script>")
    path = tmp_path / "annex.html"
    path.write_text(annex_as_html(annex_of(words)), encoding="utf-8")
    complaints: list[str] = []
    requests: list[str] = []
    with warnings.catch_warnings():
        # The collector closes Playwright's event loop and pipes, later than pytest likes.
        warnings.simplefilter("ignore", ResourceWarning)
        with sync_api.sync_playwright() as driver:
            held = driver.chromium.launch(executable_path=BROWSER, args=list(ARGUMENTS))
            page = held.new_page(viewport={"width": width, "height": 900}, offline=True)
            page.on("console", lambda message: complaints.append(message.text))
            page.on("dialog", lambda dialog: complaints.append(dialog.message))
            page.on("request", lambda asked: requests.append(asked.url))
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert page.evaluate(LOW_CONTRAST) == []
            assert page.evaluate(CUT_WORDS) == []
            # The policy lets the style sheet through.
            style = page.evaluate("getComputedStyle(document.querySelector('th')).textAlign")
            assert style == "left"
            assert (
                page.evaluate("document.documentElement.scrollHeight") < 12_000 or width < 500
            )
            assert (complaints, requests) == ([], [page.url])
            held.close()
