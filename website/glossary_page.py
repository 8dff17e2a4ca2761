"""The glossary: every term with its meaning, and the paper or standard that it follows."""

from overheard.report.terms import GlossaryTerm, read_terms
from website.site_markdown import plain

_HEAD = """\
# Glossary

Look up here what a term means in plans, reports and code, and which paper or standard it
follows. `overheard list terms` prints the same list.

"""


def glossary_page() -> str:
    """Return the page on all terms."""
    return _HEAD + "".join(map(_item, read_terms()))


def _item(term: GlossaryTerm) -> str:
    source = f" Source: {term.source}." if term.source else ""
    return f"- **{term.name}**: {plain(term.meaning + source)}\n"
