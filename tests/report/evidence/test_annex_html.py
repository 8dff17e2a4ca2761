"""The page loads nothing, runs nothing, and shows every text literally."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise

from overheard.report.evidence.officer import OfficerWords
from overheard.report.evidence.write import annex_as_html
from tests.report.evidence.annexes import annex_of


class PageParser(HTMLParser):
    """Collects the elements of a page, their attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.headings: list[int] = []
        self.policy = self.style = self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "meta":
            self.policy += dict(attrs).get("content") or ""
        else:
            self.open.append(tag)
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.headings.append(int(tag[1]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
        self.text += data


def test_elements_are_closed_and_headings_skip_no_level() -> None:
    page = PageParser(annex_as_html(annex_of()))
    assert page.open == []
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(page.headings))


def test_no_name_becomes_markup() -> None:
    nasty = '"><img src=x onerror=alert(1)><script>alert(2)</script>'
    words = OfficerWords(residual_risk=nasty, contact=nasty)
    page = PageParser(annex_as_html(annex_of(words, title=nasty, subject=nasty)))
    assert not page.names & {"script", "img", "link", "iframe", "form", "a"}
    assert not any(name.startswith("on") for name in page.attributes)
    assert page.text.count(nasty) > 3


def test_the_policy_allows_the_style_sheet_of_the_page_alone() -> None:
    page = PageParser(annex_as_html(annex_of()))
    digest = b64encode(sha256(page.style.encode()).digest()).decode()
    assert "default-src 'none'" in page.policy
    assert f"style-src 'sha256-{digest}'" in page.policy
    assert "style" not in page.attributes
    assert "http" not in page.style


def test_every_table_has_a_name_and_none_repeats_its_heading() -> None:
    text = annex_as_html(annex_of())
    assert text.count("<table>") == text.count('role="region"') == text.count("aria-label=")
    headings = set(re.findall(r"<h3>(.*)</h3>", text))
    assert headings
    assert not headings & set(re.findall(r"<caption>(.*)</caption>", text))
