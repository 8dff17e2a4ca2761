"""The terms that a reader of the annex may not know, with their meanings."""

import re
from collections.abc import Iterable, Iterator

from overheard.drawing.sections import SectionBlock
from overheard.report.evidence.annex_section import AnnexSection, limited_table
from overheard.report.terms import GlossaryTerm, read_terms

EXPLAINED = frozenset(
    (
        "Canary",
        "Client",
        "Cohort",
        "Differential privacy (DP)",
        "Epsilon, delta",
        "Ground truth",
        "Honest but curious",
        "Label shares",
        "Member, non-member",
        "Round",
        "Secure aggregation",
        "Target",
        "Update",
    )
)
"""Terms of the glossary that an annex explains if it contains them."""


def terms_section(sections: Iterable[AnnexSection]) -> AnnexSection:
    """Return the terms of the glossary that these sections contain, with their meanings."""
    text = "\n".join(_texts(sections)).lower()
    rows = [
        (one.name, one.meaning)
        for one in read_terms()
        if one.name in EXPLAINED and re.search(_pattern(one), text)
    ]
    table = limited_table("Terms of this annex", ("Term", "Meaning"), rows)
    return AnnexSection("Terms", (SectionBlock("", (), (table,)),))


def _pattern(term: GlossaryTerm) -> str:
    """Return a pattern of the first words of a term's name, as singular and as plural."""
    word = term.name.split(",")[0].split(" (")[0].lower()
    forms = {word, f"{word}s", f"{word.removesuffix('y')}ies"}
    return rf"\b({'|'.join(map(re.escape, sorted(forms)))})\b"


def _texts(sections: Iterable[AnnexSection]) -> Iterator[str]:
    for section in sections:
        for block in section.blocks:
            yield from (block.heading, *block.paragraphs)
            for table in block.tables:
                yield from (table.caption, *table.headers)
                yield from (cell for row in table.rows for cell in row)
