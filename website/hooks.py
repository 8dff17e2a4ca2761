"""What MkDocs calls while it builds the site: adds generated pages, and adapts the others."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from overheard_studies.overview import OVERVIEW_FILE, overview_page
from website.generated_pages import generated_pages
from website.repository_files import add_repository_files, rewrite_links
from website.site_markdown import indent_lists

REPRODUCED = "reproduced"
"""Folder in `studies` of the values of experiments, and on the site of their page."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the generated pages, the examples and the plans to the files of the site."""
    for name, text in generated_pages().items():
        files.append(File.generated(config, name, content=text))
    page = overview_page(Path(config.docs_dir).parent / "studies" / REPRODUCED)
    files.append(File.generated(config, f"{REPRODUCED}/{OVERVIEW_FILE}", content=page))
    add_repository_files(files, config)
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Make a page of the repository one that the site's Markdown reads in the same way."""
    return indent_lists(rewrite_links(markdown, page.file.src_uri))
