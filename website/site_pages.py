"""All pages of the site, written to a folder from which a site builder needs no hooks."""

import shutil
from pathlib import Path

from overheard_studies.overview import OVERVIEW_FILE, overview_page
from website.generated_pages import generated_pages
from website.repository_files import ROOT, rewrite_links, shown_files
from website.site_markdown import indent_lists

REPRODUCED = "reproduced"
"""Folder in `studies` of the values of experiments, and on the site of their page."""


def write_site_pages(folder: Path) -> None:
    """Write every page and picture of the site, in place of what the folder held.

    These are the pages of docs/, those that are written from the code, and the examples, plans
    and journals of the repository.

    Args:
        folder: the `docs_dir` of mkdocs.yml, or another folder.

    """
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(ROOT / "docs", folder)
    for path in shown_files():
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    for name, text in generated_pages().items():
        (folder / name).write_text(text, "utf-8")
    overview = folder / REPRODUCED / OVERVIEW_FILE
    overview.parent.mkdir(parents=True)
    overview.write_text(overview_page(ROOT / "studies" / REPRODUCED), "utf-8")
    for page in folder.rglob("*.md"):
        adapted = rewrite_links(page.read_text("utf-8"), page.relative_to(folder).as_posix())
        page.write_text(indent_lists(adapted), "utf-8")
