"""What a report tells of class shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.coverage import LEVEL
from overheard.drawing.pages import Pages
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import Statement, best_target_words
from overheard.findings.exposures import Arm, Case, Exposure
from overheard.findings.figures import SPACE
from overheard.findings.finding import Audit
from overheard.findings.names import all_others, possessive
from overheard.findings.row import Row
from overheard.questions.label_shares.measures import MEASURES
from overheard.questions.label_shares.pages.absence import absence_words
from overheard.questions.label_shares.pages.claims_plates import claims_plates
from overheard.questions.label_shares.pages.intervals import interval_words, intervals_tables
from overheard.questions.label_shares.pages.shares_plates import shares_plates

WORST = "linf"
"""The score that is told where it is there: by the class that is read worst."""

WIDTH = 214
"""Pixels of the drawing of one client."""


@final
@dataclass(frozen=True)
class LabelSharesPages(Pages):
    """True and inferred shares client by client, and how far intervals can be trusted."""

    name = "label_shares"

    def reading(self, row: Row, whose: str) -> Statement:
        """Shares, and how far off the one is that is read worst."""
        told, what = self.question.measure(row.score), f"{whose} class shares"
        value = told.tell(row.value.mean)
        if row.score != WORST:
            figure = f"{told.title} {value}"
            return Statement(what, f"reads {what} with {figure}", f"at {figure}")
        where = f"{value} on the class it gets most wrong"
        return Statement(what, f"reads {what} to within {where}", f"off by {where}")

    def intro(self) -> str:
        """How far off the share is that is read worst."""
        return (
            "For class shares: how far off it is, in points, on the class it gets most wrong."
        )

    def told_row(self, case: Case) -> Row:
        """The error on the class that is read worst, where it was scored."""
        return case.whole.get(WORST, case.row)

    def sentences(self, exposure: Exposure) -> tuple[str, ...]:
        """What is misplaced, who is read best, absent classes, and intervals."""
        case = exposure.cases[0]
        row = self.told_row(case)
        preposition = "to within " if row.score == WORST else ""
        return (
            *_misplaced(exposure, case),
            *best_target_words(exposure, row, self.question.measure(row.score), preposition),
            *absence_words(exposure),
            *interval_words(exposure),
        )

    def claims(self, audit: Audit, every: Sequence[Arm]) -> tuple[SectionBlock, ...]:
        """Claimed shares beside a guess."""
        plates = claims_plates(every, audit.class_names)
        if not plates:
            return ()
        note = (
            f"An interval says where a share lies with a chance of {LEVEL}, as calibrated on "
            "clients that the attacker made up; it holds as far as the real ones are like "
            "those."
        )
        return (SectionBlock(paragraphs=(note,), plates=plates, panel_width=WIDTH),)

    def sections(self, audit: Audit, every: Sequence[Arm]) -> tuple[Section, ...]:
        """Shares client by client, and how often intervals held."""
        plates, tables = shares_plates(every, audit.class_names), intervals_tables(every)
        are_claimed = any(held.claims for arm in every for held in arm.exposures)
        known = " where the true ones are known" if are_claimed else ""
        blocks = [
            SectionBlock(plates=plates, panel_width=WIDTH)
            if plates
            else SectionBlock(paragraphs=(f"No shares of classes were inferred{known}.",))
        ]
        if tables:
            blocks.append(SectionBlock(_TRUST, (_TRUST_NOTE,), tables))
        title = "True and inferred, client by client"
        return (Section("shares", title, "True and inferred", tuple(blocks)),)

    def terms(self) -> tuple[Term, ...]:
        """Both errors of shares, and intervals of them."""
        return _TERMS


def _misplaced(exposure: Exposure, case: Case) -> tuple[str, ...]:
    row = case.whole.get("l1")
    if row is None or row.blind is None:
        return ()
    told = MEASURES["l1"]
    cohort = possessive(all_others(exposure.observers))
    owner = cohort if exposure.about == "cohort" else "a client's"
    return (
        f"It puts {told.tell(row.value.mean)} of {owner} data in the wrong class; "
        f"a blind guess {told.tell(row.blind)}.",
    )


_TRUST = "How far the stated intervals can be trusted"

_TRUST_NOTE = (
    f"An attack may say between which bounds each share lies with a chance of {LEVEL}. Bounds "
    "that hold the truth far less often promise too much: the attacker takes clients, their "
    "training or its own examples for what they are not."
)

_TERMS = (
    Term(
        "Within so many points",
        "An observer estimates which share of a client’s data belongs to each class. The "
        "figure is the largest error of any one share in percentage points (score linf), so "
        "no class is further off.",
    ),
    Term(
        "Data put in the wrong class",
        "Half the sum of all errors of the shares (half the score l1, the total variation): "
        "the part of a client’s data that would have to change class for the estimate to be "
        f"right. 0{SPACE}% is a perfect reading.",
    ),
    Term(
        f"{LEVEL} interval of an attack",
        "The bounds between which an attack says a share lies with a chance of "
        f"{LEVEL}. How often they held the truth is counted over all shares (score coverage); "
        f"it is near {LEVEL} where the attacker’s own picture of the clients is right.",
    ),
)
