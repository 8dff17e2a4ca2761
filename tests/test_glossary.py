"""The glossary covers the public names and the keys of plans, and its page is up to date."""

import inspect
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from rich.console import Console

import overheard
from overheard.cli.listing import list_parts
from overheard.plans.registries import REGISTRIES
from overheard.report.terms import GlossaryTerm, read_terms
from tests.glossary import PAGE, glossary_text
from tests.prose import ROOT
from tests.test_words import words_of

HERE = Path(__file__).parent

PLAIN = frozenset((HERE / "plain_words.txt").read_text(encoding="utf-8").split())
"""Plain English, and the usual abbreviations of machine learning."""

PLAN_KEYS: list[str] = json.loads((HERE / "frozen.json").read_text())["keys of plans"]


PLUGINS = {plugin.__name__ for registry in REGISTRIES for plugin in registry.plugins().values()}
"""Their names are those of their papers; `overheard list` explains them."""


def public_names() -> Iterator[str]:
    """Every public name, with the members of classes and the parameters of functions."""
    for name in dir(overheard):
        public = getattr(overheard, name)
        if name in PLUGINS:
            continue
        yield name
        if inspect.isclass(public) and not issubclass(public, Exception):
            inherited = dir(BaseModel) if issubclass(public, BaseModel) else []
            yield from (m for m in dir(public) if m[0] != "_" and m not in inherited)
            yield from getattr(public, "__dataclass_fields__", ())
        elif inspect.isfunction(public):
            yield from inspect.signature(public).parameters


def unexplained() -> dict[str, list[str]]:
    """Every word of a public name that is neither in the glossary nor plain, with its names."""
    terms = {word for term in read_terms() for word in re.findall(r"[a-z]+", term.name.lower())}
    known = PLAIN | terms | {f"{term}s" for term in terms}
    names = defaultdict(set)
    for name in (*public_names(), *PLAN_KEYS):
        for word in words_of(name):
            names[word].add(name)
    return {word: sorted(names[word]) for word in sorted(names.keys() - known)}


def test_every_word_of_a_public_name_is_explained_or_plain() -> None:
    assert unexplained() == {}, "explain it in report/terms.toml, or choose a plain word"


def test_plain_words_are_not_terms() -> None:
    assert sorted(PLAIN) == (HERE / "plain_words.txt").read_text(encoding="utf-8").split()


def test_the_page_is_what_the_terms_say() -> None:
    assert PAGE.read_text(encoding="utf-8").strip() == glossary_text().strip()


def test_terms_are_unique_and_in_order() -> None:
    names = [term.name.lower() for term in read_terms()]
    assert names == sorted(set(names))


@pytest.mark.parametrize("term", read_terms(), ids=lambda term: term.name)
def test_a_term_has_one_or_two_short_sentences(term: GlossaryTerm) -> None:
    assert term.meaning.endswith(".")
    assert len(term.meaning) < 220


def test_the_readme_and_every_threat_page_lead_to_the_glossary() -> None:
    assert "docs/glossary.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "glossary.md" in (ROOT / "docs" / "threat-models.md").read_text(encoding="utf-8")


def test_the_command_prints_every_term_with_its_source() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    list_parts("terms", console)
    text = console.export_text()
    for term in read_terms():
        assert term.name in text
        assert term.source in text
