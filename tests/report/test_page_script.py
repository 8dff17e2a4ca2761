"""What the page's script adds: values, sorting, a filter and folds; and a page without it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from overheard.drawing.figures import ReportTable
from overheard_studies.pages.experiment_page import ExperimentPage
from tests.report.browsers import BROWSER

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH"),
]

CENTRE = """mark => {
  mark.scrollIntoView({ block: "center" });
  const box = mark.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
}"""


@dataclass(frozen=True, slots=True)
class Watched:
    """A page, with what it complained of and asked for."""

    page: "Page"
    complaints: list[str]
    requests: list[str]


@pytest.fixture
def watched(browser: "Browser", short_report: Path) -> Iterator[Watched]:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, offline=True)
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: requests.append(asked.url))
    page.add_init_script(
        "addEventListener('securitypolicyviolation', e => console.error(e.violatedDirective))"
    )
    page.goto(short_report.as_uri())
    yield Watched(page, complaints, requests)
    assert complaints == []
    assert set(requests) == {short_report.as_uri()}
    page.close()


def test_a_mark_tells_its_value_to_the_pointer(watched: Watched) -> None:
    page = watched.page
    mark = page.locator("#arms figure .value").first
    value = mark.get_attribute("aria-label")
    assert not page.locator(".tip").is_visible()
    x, y = mark.evaluate(CENTRE)
    page.mouse.move(x + 2, y + 2)
    assert page.locator(".tip").text_content() == value
    assert re.search(r"\d", value)
    page.mouse.move(2, 2)
    assert not page.locator(".tip").is_visible()


def test_arrows_lead_from_value_to_value(watched: Watched) -> None:
    page = watched.page
    marks = page.locator("#arms figure svg[aria-label]").first.locator(".value")
    values = [one.get_attribute("aria-label") for one in marks.all()]
    assert len(set(values)) > 1
    marks.first.focus()
    assert page.locator(".tip").text_content() == values[0]
    page.keyboard.press("ArrowRight")
    assert page.locator(".tip").text_content() == values[1]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.locator(".tip").text_content() == values[-1]
    page.keyboard.press("Escape")
    assert not page.locator(".tip").is_visible()


def test_a_chart_is_one_stop_of_the_tab_key(watched: Watched) -> None:
    chart = watched.page.locator("#arms figure svg[aria-label]").first
    assert chart.locator(".value[tabindex='0']").count() == 1
    assert chart.get_attribute("role") == "group"


def test_a_link_inside_the_page_opens_all_folds_around_its_target(watched: Watched) -> None:
    page = watched.page
    assert not page.locator("#scores table").is_visible()
    page.evaluate("() => { document.querySelector('#scores table').id = 'deep'; }")
    page.evaluate("location.hash = 'deep'")
    page.wait_for_function("document.querySelector('#deep').checkVisibility()")


def test_all_folds_open_and_close(watched: Watched) -> None:
    page = watched.page
    page.get_by_role("button", name="Open all details").click()
    assert page.locator("main details:not([open])").count() == 0
    page.get_by_role("button", name="Close all details").click()
    assert page.locator("main details[open]").count() == 0


def test_the_filter_leaves_what_fits_and_paper_has_everything(watched: Watched) -> None:
    page = watched.page
    answers = page.locator(".answer[data-title]")
    arms = list(dict.fromkeys(one.get_attribute("data-arm") for one in answers.all()))
    assert len(arms) > 1
    page.locator("select[name=arm]").select_option(value=arms[0])
    page.get_by_role("button", name="Open all details").click()
    shown = [one for one in answers.all() if one.is_visible()]
    assert {one.get_attribute("data-arm") for one in shown} == {arms[0]}
    status = page.locator(".filter [role=status]")
    assert status.text_content() == f"Shown: {len(shown)} of {answers.count()} results."
    heads = page.locator(".matrix thead th[data-arm]:visible")
    assert [one.get_attribute("data-arm") for one in heads.all()] == [arms[0]]
    page.emulate_media(media="print")
    assert all(one.is_visible() for one in answers.all())
    page.emulate_media(media="screen")
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function("document.querySelectorAll('.filtered').length === 0")
    assert status.text_content() == ""


def test_a_verdict_that_is_chosen_is_marked_in_the_matrix(watched: Watched) -> None:
    page = watched.page
    verdict = page.locator(".matrix td[data-verdict]").first.get_attribute("data-verdict")
    page.locator("select[name=verdict]").select_option(value=verdict)
    marked = page.locator(".matrix td.match")
    assert {one.get_attribute("data-verdict") for one in marked.all()} == {verdict}
    rows = page.locator(".matrix tbody tr:visible")
    assert all(one.locator(".match").count() for one in rows.all())


SORTED = {
    "Share": ["−12 %", "−3.0 %", "9.1 %", "10 %", "–"],
    "Size": ["640\u00a0B", "2.0\u00a0KiB", "19\u00a0KiB", "1.5\u00a0MiB", "–"],
    "Name": ["arm 2", "arm 10", "b", "local DP", "–"],
}
"""Columns in rising order; an empty cell is last in either order."""


@pytest.mark.parametrize("head", SORTED)
def test_a_column_is_sorted_as_what_it_is(browser: "Browser", head: str) -> None:
    column = SORTED[head]
    rows = tuple((f"row {place}", column[place]) for place in (3, 0, 4, 2, 1))
    table = ReportTable("Some values", ("Row", head), rows, 1)
    page = browser.new_page()
    page.set_content(ExperimentPage("n", "t", "d", (), (), (table,), (), False).html())
    button = page.get_by_role("button", name=head)
    cells = page.locator("tbody td")
    button.click()
    assert page.locator("th[aria-sort=ascending]").text_content() == head
    assert cells.all_text_contents() == column
    button.press("Enter")
    assert page.locator("th[aria-sort=descending]").text_content() == head
    assert cells.all_text_contents() == [*reversed(column[:-1]), column[-1]]
    page.get_by_role("button", name="Row").click()
    assert page.locator("th[aria-sort]").count() == 1
    page.close()


def test_a_page_without_scripts_has_all_results_and_no_dead_controls(
    browser: "Browser", short_report: Path
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(short_report.as_uri())
    assert page.locator(".matrix td").first.is_visible()
    assert page.locator("button:visible, select:visible, .tip").count() == 0
    assert page.locator("svg[role=img] .value title").count() > 10
    page.locator("nav a[href='#scores']").click()
    assert page.locator("#scores").is_visible()
    context.close()
