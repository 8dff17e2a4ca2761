"""Files of the repository outside docs/ that pages link to: examples, plans and journals."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

FOLDERS = ("examples", "plans", "studies")

JOURNALS = "studies/*.md"
"""What is shown of the studies: their code and their values are not."""

SUFFIXES = (".md", ".toml", ".py")

DOCS = "docs/"

_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")


def shown_files() -> list[Path]:
    """Return the examples, the plans and the journals, in order."""
    examples = [path for folder in ("examples", "plans") for path in (ROOT / folder).rglob("*")]
    return [
        path
        for path in sorted([*examples, *ROOT.glob(JOURNALS)])
        if path.suffix in SUFFIXES and "tests" not in path.parts
    ]


def rewrite_links(markdown: str, page: str) -> str:
    """Return a page with its links out of docs/, or into it, as links within the site.

    On the site the pages of docs/ stand at the top, beside the folders of the repository.

    Args:
        markdown: the page.
        page: its path on the site.

    """
    place = page if page.startswith(FOLDERS) else DOCS + page

    def rewrite(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), link[2]))
        if (ROOT / target).is_dir():
            target += "/README.md"
        if target.startswith(DOCS) == place.startswith(DOCS) and (ROOT / target).is_file():
            return link[0]
        goal = target.removeprefix(DOCS)
        relative = posixpath.relpath(goal, posixpath.dirname(page) or ".")
        return f"{link[1]}{relative}{link[3] or ''}{link[4]}"

    return _LINK.sub(rewrite, markdown)
