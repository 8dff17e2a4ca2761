"""The page for readers with a screen reader, a keyboard, a phone, or a dark screen."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.report.browsers import BROWSER, OpenPage

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH"),
]

SET_FOLDS = "isOpen => document.querySelectorAll('details').forEach(fold => fold.open = isOpen)"

HEADINGS = """() => [...document.querySelectorAll('h1, h2, h3, h4')].map(
    heading => Number(heading.tagName[1]))"""


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (390, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.nightly),
        pytest.param(390, "light", marks=pytest.mark.nightly),
    ],
)
def test_axe_finds_nothing(
    open_page: OpenPage, short_report: Path, width: int, scheme: str
) -> None:
    page = open_page(short_report, width, color_scheme=scheme)
    for is_open in (False, True):
        page.evaluate(SET_FOLDS, is_open)
        found = axe.Axe().run(page).response["violations"]
        assert [(one["id"], one["impact"], one["nodes"][0]["html"]) for one in found] == []


def test_on_a_phone_each_bar_is_seen_whole_with_the_name_of_its_arm(
    open_page: OpenPage, short_report: Path
) -> None:
    page = open_page(short_report, 390)
    bars = page.locator(".matrix .bar")
    assert bars.count() >= 2
    for number in range(bars.count()):
        box = bars.nth(number).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["width"] >= 150
    names = page.evaluate(
        "[...document.querySelectorAll('.matrix td')].map("
        "field => getComputedStyle(field, '::before').content === `\"${field.dataset.arm}\"`)"
    )
    assert all(names)


def test_headings_have_one_root_and_leave_out_no_level(
    open_page: OpenPage, short_report: Path
) -> None:
    page = open_page(short_report)
    levels = page.evaluate(HEADINGS)
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_first_key_leads_to_the_results(open_page: OpenPage, short_report: Path) -> None:
    page = open_page(short_report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_what_has_the_focus_is_outlined(open_page: OpenPage, short_report: Path) -> None:
    page = open_page(short_report)
    for place in ("nav a", ".filter select", ".scroll", "nav button", "summary"):
        page.keyboard.press("Tab")  # The outline is for those who use the keyboard.
        page.locator(place).first.focus()
        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert (place, style) == (place, "solid")


def test_every_chart_has_a_name_and_a_description(
    open_page: OpenPage, short_report: Path
) -> None:
    page = open_page(short_report)
    charts = page.locator("svg[aria-label]")
    assert charts.count() >= 5
    for place in range(charts.count()):
        described_by = charts.nth(place).get_attribute("aria-describedby")
        assert described_by is None or "axis" in page.locator(f"#{described_by}").text_content()
    assert page.locator("th:not([scope])").count() == 0
