"""What a report tells of who sent an update."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.pages import Pages
from overheard.drawing.people import (
    INTERVALS_TERM,
    PAIRS_TERM,
    WHY_UNMEASURED,
    people_section,
    unmeasured_words,
)
from overheard.drawing.sections import Section, Term
from overheard.drawing.sentences import Statement
from overheard.findings.exposures import Arm, Case, Exposure
from overheard.findings.figures import SPACE
from overheard.findings.finding import Audit
from overheard.findings.row import Row
from overheard.questions.identity.pages.identity_plates import identity_plates
from overheard.questions.identity.pages.identity_tables import identity_tables
from overheard.questions.identity.pages.identity_words import identity_words

PRECISION = "mean_average_precision"


@final
@dataclass(frozen=True)
class IdentityPages(Pages):
    """How well users are recognised, beside chance and beside the control."""

    name = "identity"

    def reading(self, row: Row, whose: str) -> Statement:
        """How often the first name is the right one."""
        value = self.question.measure(row.score).tell(row.value.mean)
        return Statement(
            "who is behind what is sent",
            f"names who is behind what is sent, right at the first try in {value}",
            f"right at the first try in {value}",
        )

    def intro(self) -> str:
        """How often the first name is the right one."""
        return "For who is behind what is sent: how often the first name is the right one."

    def frontier_row(self, case: Case) -> Row:
        """The average precision, which grows with all that is said of a user."""
        return case.whole.get(PRECISION, case.row)

    def sentences(self, exposure: Exposure) -> tuple[str, ...]:
        """Lists, pairs, strangers, the control, and the gain over the published attack."""
        return identity_words(exposure)

    def unmeasured(self, exposure: Exposure) -> str:
        """Nobody is known."""
        return unmeasured_words(exposure)

    def why_unmeasured(self) -> str:
        """Nobody is known."""
        return WHY_UNMEASURED

    def sections(self, audit: Audit, every: Sequence[Arm]) -> tuple[Section, ...]:
        """Tables and curves."""
        return people_section(identity_tables(every), identity_plates(every))

    def terms(self) -> tuple[Term, ...]:
        """Precision, first names, pairs, strangers and the control."""
        return _TERMS


_TERMS = (
    Term(
        "Average precision a user",
        "All that was sent is ranked by how likely it is of one user; the average precision is "
        "the mean, over what is that user’s, of the share that is his among all ranked as high "
        "or higher. The figure is the mean over users (score mean_average_precision). Alike "
        "scores are broken by chance. A random order gets more than one in the number of "
        "users; “times chance” is the ratio to it, and grows with their number.",
    ),
    Term(
        "Named right at the first try",
        "The part of the targets whose true user has the highest score (score top1); users "
        "with alike scores share the place.",
    ),
    PAIRS_TERM,
    Term(
        f"Named right at 1{SPACE}% false alarms",
        "The part of the known users’ targets that are named right with more evidence than all "
        f"but 1{SPACE}% of the targets of users whom the attacker does not know (score "
        "dir_at_1_percent).",
    ),
    Term(
        "Identities swapped",
        "What the average precision comes to where devices, each with all that it sent, swap "
        "users by chance. A control outside of it tells clients apart by something else than "
        "their examples.",
    ),
    INTERVALS_TERM,
)
