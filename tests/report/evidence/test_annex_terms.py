"""The annex explains the terms that it contains, in the words of the glossary."""

from overheard.drawing.sections import SectionBlock
from overheard.report.evidence.annex import EXPLAINED, terms_section
from overheard.report.evidence.annex_section import AnnexSection
from overheard.report.terms import read_terms
from tests.report.evidence.annexes import text_of


def test_explains_what_occurs_and_nothing_else() -> None:
    sections = [AnnexSection("x", (SectionBlock("The Cohort", ("epsilon is 3",)),))]
    text = text_of(terms_section(sections))
    names = [line.split(" | ")[0] for line in text.splitlines() if " | " in line]
    assert names == ["Term", "Cohort", "Epsilon, delta"]


def test_a_plural_counts_and_a_part_of_a_word_does_not() -> None:
    block = SectionBlock("", ("Attacks on canaries, around the grounds, remembered.",))
    text = text_of(terms_section([AnnexSection("x", (block,))]))
    names = [line.split(" | ")[0] for line in text.splitlines() if " | " in line]
    assert names == ["Term", "Canary"]


def test_every_explained_term_is_one_of_the_glossary() -> None:
    assert {one.name for one in read_terms()} >= EXPLAINED
