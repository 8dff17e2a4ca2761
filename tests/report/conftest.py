"""A browser, and a report to show in it."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from overheard.findings.audit import Audit
from overheard.report.write import write_report
from tests.report.browsers import ARGUMENTS, BROWSER, OpenPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def report(rich: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(rich, folder)
    return folder / "report.html"


@pytest.fixture
def short_report(small: Audit, tmp_path: Path) -> Path:
    write_report(small, tmp_path)
    return tmp_path / "report.html"


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("no Chromium on the PATH")
    # The collector closes Playwright's event loop and pipes, later than pytest likes.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with sync_api.sync_playwright() as driver:
            held = driver.chromium.launch(executable_path=BROWSER, args=list(ARGUMENTS))
            yield held
            held.close()


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[OpenPage]:
    """Return a function that opens a file in a page, which is closed after the test."""
    pages: list[Page] = []

    def opened(path: Path, width: int = 1280, height: int = 900, **options: object) -> "Page":
        viewport = {"width": width, "height": height}
        pages.append(browser.new_page(viewport=viewport, offline=True, **options))
        pages[-1].goto(path.as_uri())
        return pages[-1]

    yield opened
    for page in pages:
        page.close()
