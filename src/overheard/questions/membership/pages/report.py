"""What a report tells of records that were trained on."""

from dataclasses import dataclass
from typing import final

from overheard.drawing.pages import Pages
from overheard.drawing.sections import Term
from overheard.drawing.sentences import Statement, best_target_words
from overheard.findings.exposures import Exposure
from overheard.findings.finding import Finding
from overheard.findings.row import Row
from overheard.questions.membership.pages.membership_words import membership_words


@final
@dataclass(frozen=True)
class MembershipPages(Pages):
    """How well records that were trained on are told from others."""

    name = "membership"

    def reading(self, row: Row, whose: str) -> Statement:
        """Pairs of a record that was trained on and one of nobody."""
        value = self.question.measure(row.score).tell(row.value.mean)
        what = f"which records are among {whose} data"
        pairs = f"right in {value} pairs of one that is and one of nobody"
        return Statement(what, f"tells {what}, {pairs}", pairs)

    def intro(self) -> str:
        """Pairs of a record that was trained on and one of nobody."""
        return (
            "For records that were trained on: of 100 pairs of one that was and one of nobody, "
            "in how many it finds out which is which."
        )

    def sentences(self, exposure: Exposure) -> tuple[str, ...]:
        """What is found at few false positives, and whose records are read best."""
        case = exposure.cases[0]
        row = self.told_row(case)
        return (
            *membership_words(case),
            *best_target_words(exposure, row, self.question.measure(row.score)),
        )

    def claim_in_words(self, finding: Finding) -> str:
        """How many records are said to have been trained on."""
        inside = sum(score > 0 for score in finding.claimed)
        return f"{inside} of {len(finding.claimed)} records told as trained on"

    def terms(self) -> tuple[Term, ...]:
        """Records told apart."""
        return (
            Term(
                "Records told apart",
                "Of 100 pairs of a record that the client trained on and one that nobody did, "
                "in how many the former has the higher score (score membership_auc). 50 is a "
                "coin’s.",
            ),
        )
