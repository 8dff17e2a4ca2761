"""Writes docs/glossary.md from the terms of the report: `make glossary` runs it."""

from pathlib import Path
from textwrap import fill

from overheard.report.terms import GlossaryTerm, read_terms

PAGE = Path(__file__).parent.parent / "docs" / "glossary.md"

HEAD = """\
# Glossary

Look up here what a term means in plans, reports and code, and which paper or standard it
follows. `overheard list terms` prints the same list. `make glossary` writes this page from
`src/overheard/report/terms.toml`.
"""


def glossary_text() -> str:
    """Return the page as it should be."""
    return HEAD + "".join(map(_entry, read_terms()))


def _entry(term: GlossaryTerm) -> str:
    source = f" Source: {term.source}." if term.source else ""
    return "\n" + fill(
        f"- **{term.name}**: {term.meaning}{source}",
        width=100,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


if __name__ == "__main__":
    PAGE.write_text(glossary_text() + "\n", encoding="utf-8")
