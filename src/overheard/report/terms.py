"""The glossary: every term of the product and of questions; see `overheard list terms`."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from overheard.report.question_files import read_question_files

GLOSSARY_ADDRESS = (
    "https://github.com/overheard/overheard/blob/main/src/overheard/report/terms.toml"
)
"""The terms, for readers of a report who have neither Overheard nor its documentation site."""


@dataclass(frozen=True, slots=True)
class GlossaryTerm:
    """A term with its meaning.

    Args:
        name: the term.
        meaning: one or two sentences.
        source: the paper or standard that defines it; "" = it is a term of this project.

    """

    name: str
    meaning: str
    source: str = ""


def read_terms() -> tuple[GlossaryTerm, ...]:
    """Return all terms in alphabetical order."""
    text = files("overheard.report").joinpath("terms.toml").read_text(encoding="utf-8")
    tables = (tomllib.loads(text), *read_question_files("terms.toml"))
    terms = [GlossaryTerm(**entry) for table in tables for entry in table["terms"]]
    return tuple(sorted(terms, key=lambda term: term.name.lower()))
