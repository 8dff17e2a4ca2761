"""A browser, and a report to show in it."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from overheard.findings.audit import Audit
from overheard.report.write import write_report
from tests.report.browsers import ARGUMENTS, BROWSER

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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
