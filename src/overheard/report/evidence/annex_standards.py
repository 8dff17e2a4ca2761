"""Standards by finding in the annex."""

from collections.abc import Iterable, Iterator

from overheard.drawing.sections import SectionBlock
from overheard.findings.document import FindingsDocument
from overheard.report.evidence.annex_section import (
    AnnexSection,
    limited_table,
    question_words,
)
from overheard.report.evidence.standards import (
    EPSILON,
    NO_IDENTIFIER,
    FindingStandards,
    Level,
    StandardReference,
    standards_of,
)

READING = (
    "The tables name where standards and catalogues describe a kind of finding. They help to "
    "find the place, and do not state that anything is met. Sentences are in Overheard’s own "
    "words. Look up what was not verified before you rely on it."
)

SOURCES = "Where these sections are, and who read them"

LEVELS: dict[Level, str] = {
    "client": "about a client",
    "record": "about a record",
    "cohort": "about all clients together",
    "run": "about a run",
}


def standards_section(findings: FindingsDocument) -> AnnexSection:
    """Return what standards say on each kind of finding, and how that was checked."""
    kinds = dict.fromkeys((one.question, one.about) for one in findings.verdicts)
    entries = dict.fromkeys(standards_of(question, about) for question, about in kinds)
    if findings.epsilon:
        entries[standards_of(EPSILON)] = None
    return AnnexSection(
        "Standards by finding",
        (
            SectionBlock("", (READING,)),
            *(standards_block(entry) for entry in entries),
            *_sources_blocks(entries),
        ),
    )


def standards_block(entry: FindingStandards) -> SectionBlock:
    """Return the sections of standards on one kind of finding, as a table."""
    is_epsilon = entry.kind == EPSILON
    name = "claims of differential privacy" if is_epsilon else question_words(entry.kind)
    heading = f"{name[:1].upper()}{name[1:]} ({LEVELS[entry.level]})"
    if not entry.references:
        return SectionBlock(heading, (f"{NO_IDENTIFIER.capitalize()}. {entry.note}",))
    table = limited_table(
        heading,
        ("Standard, edition and place", "What it says", "Verified"),
        [(one.name, one.sentence, _verified(one)) for one in entry.references],
    )
    return SectionBlock(heading, (entry.note,) if entry.note else (), (table,))


def _verified(reference: StandardReference) -> str:
    return reference.reading_note or "read in the original"


def _sources_blocks(entries: Iterable[FindingStandards]) -> Iterator[SectionBlock]:
    """Yield a table of all sources, each once, unless there is none."""
    rows = dict.fromkeys(
        (f"{one.standard} ({one.edition})", one.source, one.checked_by)
        for entry in entries
        for one in entry.references
    )
    if rows:
        table = limited_table(SOURCES, ("Standard", "Address", "Who checked it"), list(rows))
        yield SectionBlock(SOURCES, (), (table,))
