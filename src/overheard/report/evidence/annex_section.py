"""A section of the annex, and the table and words that its sections share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.core.parties import Party
from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.findings.names import make_printable, name_observers, name_other_clients
from overheard.findings.threat_verdict import TargetKind
from overheard.report.page_registry import pages_of

MAX_ROWS = 200
"""Most rows that a table shows; it says how many more there are."""


@final
@dataclass(frozen=True, slots=True)
class AnnexSection:
    """A section of the annex.

    Args:
        title: its title.
        blocks: its texts and tables; an annex has no figures.

    """

    title: str
    blocks: tuple[SectionBlock, ...]


def limited_table(
    caption: str, headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> ReportTable:
    """Return a table of texts; after `MAX_ROWS` rows it says how many more there are."""
    more = len(rows) - MAX_ROWS
    if more > 0:
        last = (f"{more:,} more rows are in findings.json.", *[""] * (len(headers) - 1))
        rows = (*rows[:MAX_ROWS], last)
    return ReportTable(caption, headers, tuple(rows), len(headers))


def question_words(question: str) -> str:
    """Return a question in words, or its name if the question is not installed."""
    words = pages_of(question).plain_question or make_printable(question).replace("_", " ")
    return f"{words[:1].lower()}{words[1:]}"


def observer_words(observers: Sequence[str]) -> str:
    """Return the observers in words, with a capital; () = anyone who reads only the models."""
    if not observers:
        return "Whoever reads the global models"
    name = name_observers([Party(one) for one in observers])
    return f"{name[:1].upper()}{name[1:]}"


def target_words(about: TargetKind, observers: Sequence[str]) -> str:
    """Return the targets in words, as these observers see them."""
    if about == "clients":
        return "each client"
    return name_other_clients([Party(one) for one in observers])
