"""The project's glossary: every term of the product, which `overheard list terms` prints."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files

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
    terms = (GlossaryTerm(**entry) for entry in tomllib.loads(text)["terms"])
    return tuple(sorted(terms, key=lambda term: term.name.lower()))
