"""The page as a browser shows it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from overheard.archive.run_time import RunTime
from overheard.auditing.threat_results import with_verdicts
from overheard.findings.audit import Audit
from overheard.findings.traffic import Traffic
from overheard.report.write import write_report
from tests.report.browsers import BROWSER, OpenPage
from tests.report.shift_audits import shift_audit, shift_findings
from tests.report.user_audits import (
    MLP,
    attribute_findings,
    identity_findings,
    sender_findings,
    user_audit,
)
from tests.runs.audits import HOSTILE

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH"),
]

CHARTS_WITHOUT_TABLE = """() => [...document.querySelectorAll("figure")].filter(
    figure => !figure.querySelector(".panel svg") || !figure.querySelector("table caption")
        || !figure.querySelector("tbody td") || !figure.querySelector("figcaption")
        || figure.querySelector(".panel svg:not([aria-label])")
).length"""

FOLDED_SHOWN = """() => [...document.querySelectorAll("details:not([open]) > *")].filter(
    part => part.checkVisibility()
).length"""

CUT_CELLS = """() => [...document.querySelectorAll(".first td, .first th")].filter(
    cell => cell.scrollWidth > cell.clientWidth + 1
).length"""

LOW_CONTRAST = """() => {
  const light = colour => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255);
    const [r, g, b] = parts.map(p => p <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/^rgba\\(.*, 0\\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const speaks = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!speaks) continue;
    const style = getComputedStyle(element);
    const ink = element.tagName === "text" ? style.fill : style.color;
    const [low, high] = [light(ink), light(ground(element))].sort((a, b) => a - b);
    if ((high + 0.05) / (low + 0.05) < 4.5) poor.push(element.tagName + " " + ink);
  }
  return [...new Set(poor)];
}"""


@dataclass(frozen=True, slots=True)
class Shown:
    """A page in a browser, with what it said and asked for."""

    page: "sync_api.Page"
    complaints: list[str]
    requests: list[str]


@pytest.fixture(params=[(1280, "light"), (390, "light"), (1280, "dark"), (390, "dark")])
def shown(
    request: pytest.FixtureRequest, browser: "sync_api.Browser", report: Path
) -> Iterator[Shown]:
    width, scheme = request.param
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
    )
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda asked: requests.append(asked.url))
    page.goto(report.as_uri())
    yield Shown(page, complaints, requests)
    page.close()


def test_the_page_loads_nothing_fits_and_is_readable(shown: Shown) -> None:
    page = shown.page
    assert shown.complaints == []
    assert shown.requests == [page.url]
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(LOW_CONTRAST) == []


def test_every_chart_has_a_name_and_a_table_with_its_numbers(
    open_page: OpenPage, report: Path
) -> None:
    page = open_page(report)
    assert page.locator("figure").count() >= 5
    assert page.evaluate(CHARTS_WITHOUT_TABLE) == 0


def check_readable(page: "sync_api.Page") -> None:
    """Check that a page fits, has contrast, a table for each chart, and only its own script."""
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(LOW_CONTRAST) == []
    assert page.evaluate(CHARTS_WITHOUT_TABLE) == 0
    assert page.evaluate("document.scripts.length") == 1


def test_a_report_on_shifts_is_readable_and_complete(
    open_page: OpenPage, tmp_path: Path
) -> None:
    findings = [
        *shift_findings("none", "tracker", 9.0, runs=20),
        *shift_findings("none", HOSTILE, 1.0, runs=20, has_alarm=False),
        *shift_findings("local DP", "tracker", 2.0, runs=20),
    ]
    write_report(with_verdicts(shift_audit(findings)), tmp_path)
    page = open_page(tmp_path / "report.html")
    check_readable(page)
    assert page.locator("#shifts figure").count() == 3
    assert page.locator("nav a[href='#shifts']").count() == 1


def test_a_report_on_users_is_readable_and_complete(
    open_page: OpenPage, tmp_path: Path
) -> None:
    findings = [
        *identity_findings("none", "ours", 3.0),
        *identity_findings("none", HOSTILE, 1.0, part=MLP),
        *identity_findings("mm_aug", "ours, knowing the defenses", 2.0),
        *identity_findings("mm_aug", HOSTILE, 0.5, part=MLP),
        *sender_findings("none", "link", 2.0),
        *attribute_findings("none", "age", 2.0),
    ]
    audit = user_audit(findings, {"none": 0.8, "mm_aug": 0.78})
    write_report(with_verdicts(audit), tmp_path)
    page = open_page(tmp_path / "report.html")
    check_readable(page)
    # Who is who in either arm; the links.
    assert page.locator("#users figure").count() == 3
    # The frontier of who is who; beside it each of the three questions, arm by arm.
    assert page.locator("#arms figure").count() == 4
    assert page.locator("nav a[href='#users']").count() == 1


def test_a_report_shows_the_cost_of_each_arm(
    open_page: OpenPage, small: Audit, tmp_path: Path
) -> None:
    none, noise = small.arms
    runs = (
        replace(none, traffic=Traffic(2**21, 2**21, 4, 6), seconds=RunTime(90.0, 30.0)),
        replace(noise, arm=HOSTILE, traffic=Traffic(2**20, 2**20, 4, 6)),
    )
    findings = tuple(
        replace(one, cell=replace(one.cell, arm=HOSTILE)) if one.cell.arm == "noise" else one
        for one in small.findings
    )
    write_report(with_verdicts(replace(small, arms=runs, findings=findings)), tmp_path)
    page = open_page(tmp_path / "report.html")
    check_readable(page)
    costs = page.locator("#arms table").first
    cells = [text.replace("\u00a0", " ") for text in costs.locator("td").all_text_contents()]
    assert cells[2:8] == ["2.0 MiB", "512 KiB", "2.0 MiB", "341 KiB", "1.5 min", "30 s"]
    assert costs.locator("th[scope=row]").all_text_contents() == ["none", HOSTILE]
    frontier = page.locator("#arms figure").first
    assert frontier.locator(".panel svg").count() == 2


def test_a_report_without_shifts_and_users_has_no_such_sections(
    open_page: OpenPage, report: Path
) -> None:
    page = open_page(report)
    assert page.locator("#shifts, nav a[href='#shifts']").count() == 0
    assert page.locator("#users, nav a[href='#users']").count() == 0


def test_paper_has_the_first_page_and_the_charts_without_what_is_folded(
    open_page: OpenPage, report: Path
) -> None:
    # A4 with margins of 1 cm, at 96 pixels an inch.
    page = open_page(report, 718, 1047)
    page.emulate_media(media="print")
    assert page.evaluate(FOLDED_SHOWN) == 0
    assert page.evaluate(CUT_CELLS) == 0
    assert page.locator("#arms figure svg").first.is_visible()
    pdf = page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page[^s]", pdf)) <= 12


def test_a_link_opens_the_part_that_it_leads_to(open_page: OpenPage, report: Path) -> None:
    page = open_page(report)
    assert not page.locator("#scores").is_visible()
    page.locator("nav a[href='#scores']").click()
    assert page.locator("#scores").is_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_part_that_is_opened_fits(open_page: OpenPage, report: Path, width: int) -> None:
    page = open_page(report, width)
    assert page.evaluate("document.documentElement.scrollHeight") < 15_000
    page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(LOW_CONTRAST) == []


def test_every_class_and_the_limits_are_in_the_text(open_page: OpenPage, report: Path) -> None:
    page = open_page(report)
    heads = page.locator("figure th").all_text_contents()
    for name in ("<script>alert(1)</script>", "two $x$ and $", "شبكة", "five\\u202egpj", "八"):
        assert name in heads
    assert "An audit cannot prove that there is no risk." in page.locator("main").text_content()
