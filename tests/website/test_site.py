"""The site builds strictly, loads nothing from the network, and holds what the code has."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import sync_playwright

from tests.report.browsers import ARGUMENTS, BROWSER
from website.site_pages import write_site_pages

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow

LOADING = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href",
    "audio": "src", "video": "src", "embed": "src", "object": "data",
}  # fmt: skip
"""Elements that make a browser load something, by the attribute that says what."""


class _Page(HTMLParser):
    """The links, loads and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.repeated: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADING and LOADING[tag] in given:
            self.loads.append(given[LOADING[tag]])
        if given.get("id") in self.anchors:
            self.repeated.add(given["id"])
        if "id" in given:
            self.anchors.add(given["id"])


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    write_site_pages(folder / "build" / "pages")
    shutil.copyfile(ROOT / "mkdocs.yml", folder / "mkdocs.yml")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=folder,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WARNING" not in done.stderr
    return folder / "site"


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, _Page]:
    """Every page of the site."""
    return {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_a_browser_asks_no_other_machine_for_anything(site: Path) -> None:
    asked = list[str]()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=list(ARGUMENTS))
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        for name in ("index", "plan-reference", "researcher", "report"):
            page.goto((site / f"{name}.html").as_uri())
        browser.close()
    assert any(address.endswith("/report.png") for address in asked)
    assert [address for address in asked if urlsplit(address).scheme != "file"] == []


def is_outside(address: str) -> bool:
    return bool(urlsplit(address).netloc) or urlsplit(address).scheme in ("http", "https")


def test_nothing_is_loaded_from_the_network(site: Path, pages: dict[Path, _Page]) -> None:
    loads = {address for page in pages.values() for address in page.loads}
    assert len(loads) > 5
    assert [address for address in loads if is_outside(address)] == []
    for sheet in site.rglob("*.css"):
        text = sheet.read_text("utf-8")
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", text), sheet


def test_no_page_has_scripts_that_tell_others_of_its_reader(pages: dict[Path, _Page]) -> None:
    for path in pages:
        text = path.read_text("utf-8").lower()
        for word in ("googletagmanager", "google-analytics", "fonts.googleapis", "gtag("):
            assert word not in text, path


def dead_links(site: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    """Every link within the site that leads to no file or no anchor."""
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in {*page.links, *page.loads}:
            parts = urlsplit(link)
            if is_outside(link) or parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists() or (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors | {"__top"}
            ):
                yield f"{path.relative_to(site)}: {link}"


def test_no_link_is_dead(site: Path, pages: dict[Path, _Page]) -> None:
    assert list(dead_links(site, pages)) == []


def test_no_anchor_of_a_page_is_given_twice(pages: dict[Path, _Page]) -> None:
    assert {path.name: page.repeated for path, page in pages.items() if page.repeated} == {}


def test_every_page_of_the_docs_is_on_the_site(site: Path) -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / page.with_suffix(".html").name).exists()
    assert (site / "examples" / "plugin" / "index.html").exists()
    assert (site / "plans" / "policy.toml").read_bytes() == (
        ROOT / "plans" / "policy.toml"
    ).read_bytes()


def test_lists_are_lists(site: Path) -> None:
    flower = (site / "flower.html").read_text("utf-8")
    assert flower.count("<li>") > 20
    nested = (site / "words.html").read_text("utf-8")
    assert re.search(r"<ul>\s*<li>(?:(?!</li>).)*<ul>", nested, re.DOTALL)
