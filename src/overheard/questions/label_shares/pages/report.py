"""The report pages on label shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.coverage import LEVEL_TEXT
from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import Statement, best_target_sentences
from overheard.findings.finding import Audit
from overheard.findings.names import name_other_clients, possessive
from overheard.findings.number_format import SPACE
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, AttackResult, ThreatResult
from overheard.questions.label_shares.measures import MEASURES
from overheard.questions.label_shares.pages.absence import absence_sentences
from overheard.questions.label_shares.pages.claims_figures import claims_figures
from overheard.questions.label_shares.pages.intervals import interval_sentences, interval_tables
from overheard.questions.label_shares.pages.shares_figures import shares_figures

WORST_CLASS_ERROR = "linf"
"""The reported score, if available: the largest error of a label share."""

PANEL_WIDTH = 214
"""Width of one client's drawing in pixels."""


@final
@dataclass(frozen=True)
class LabelSharesPages(QuestionPages):
    """Report pages on label shares: inferred against true ones, and interval coverage."""

    name = "label_shares"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """State the largest error of a label share, or another score if that is missing."""
        measure, what = self.question.measure(row.score), f"{whose} label shares"
        value = measure.format(row.value.mean)
        if row.score != WORST_CLASS_ERROR:
            figure = f"{value} {measure.title[:1].lower()}{measure.title[1:]}"
            return Statement(what, f"infers {what} with {figure}", f"at {figure}")
        error = f"{value} on the label with the largest error"
        return Statement(what, f"infers {what} to within {error}", f"off by {error}")

    def intro(self) -> str:
        """Explain the reported score."""
        return "For label shares: the largest error of a label share, in percentage points."

    def summary_row(self, attack_result: AttackResult) -> ScoreRow:
        """Return the largest error of a label share, if it was scored, else the headline."""
        return attack_result.rows_by_score.get(WORST_CLASS_ERROR, attack_result.headline_row)

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Describe misassigned data, the target read best, absent classes and intervals."""
        attack_result = threat_result.attack_results[0]
        row = self.summary_row(attack_result)
        preposition = "to within " if row.score == WORST_CLASS_ERROR else ""
        return (
            *_misplaced_sentences(threat_result, attack_result),
            *best_target_sentences(
                threat_result, row, self.question.measure(row.score), preposition
            ),
            *absence_sentences(threat_result),
            *interval_sentences(threat_result),
        )

    def claim_blocks(
        self, audit: Audit, arm_results: Sequence[ArmResult]
    ) -> tuple[SectionBlock, ...]:
        """Show claimed shares without ground truth beside an uninformed guess."""
        figures = claims_figures(arm_results, audit.class_names)
        if not figures:
            return ()
        note = (
            f"An interval contains the true share with a probability of {LEVEL_TEXT}. It was "
            "calibrated on clients that the attacker simulated. It is valid only if the real "
            "clients resemble them."
        )
        return (SectionBlock(paragraphs=(note,), figures=figures, panel_width=PANEL_WIDTH),)

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Show true and inferred shares of each client, and the coverage of intervals."""
        figures, tables = (
            shares_figures(arm_results, audit.class_names),
            interval_tables(arm_results),
        )
        has_claims = any(
            threat_result.unchecked_claims
            for arm in arm_results
            for threat_result in arm.threat_results
        )
        restriction = " for clients whose true shares are known" if has_claims else ""
        blocks = [
            SectionBlock(figures=figures, panel_width=PANEL_WIDTH)
            if figures
            else SectionBlock(paragraphs=(f"No label shares were inferred{restriction}.",))
        ]
        if tables:
            blocks.append(SectionBlock(_TRUST_TITLE, (_TRUST_NOTE,), tables))
        title = "True and inferred label shares of each client"
        return (Section("shares", title, "True and inferred", tuple(blocks)),)

    def terms(self) -> tuple[Term, ...]:
        """Define both errors of shares, and intervals."""
        return _TERMS


def _misplaced_sentences(
    threat_result: ThreatResult, attack_result: AttackResult
) -> tuple[str, ...]:
    row = attack_result.rows_by_score.get("l1")
    if row is None or row.blind is None:
        return ()
    measure = MEASURES["l1"]
    cohort = possessive(name_other_clients(threat_result.observers))
    owner = cohort if threat_result.target_kind == "cohort" else "a client's"
    return (
        f"The attack assigns {measure.format(row.value.mean)} of {owner} data to the wrong "
        f"class; an uninformed guess assigns {measure.format(row.blind)}.",
    )


_TRUST_TITLE = "Reliability of the stated intervals"

_TRUST_NOTE = (
    "Some attacks state an interval for each share. It should contain the true share with a "
    f"probability of {LEVEL_TEXT}. If the intervals contain far fewer true shares, the attack "
    "is overconfident: its assumptions about the clients, their training or its own examples "
    "are wrong. Some attacks notice this without the truth, and doubt their own intervals."
)

_TERMS = (
    Term(
        "To within a number of points",
        "An observer estimates the share of each label in a client’s data. The figure is the "
        "largest error of any single share, in percentage points (score linf). No other label "
        "has a larger error.",
    ),
    Term(
        MEASURES["l1"].title,
        "The fraction of a client’s data that would have to change class to make the estimate "
        "correct: half the sum of the absolute errors of all shares (half the score l1, the "
        f"total variation distance). 0{SPACE}% is a perfect estimate.",
    ),
    Term(
        f"{LEVEL_TEXT} interval of an attack",
        f"The interval that should contain a share with a probability of {LEVEL_TEXT}, "
        "according to "
        "the attack. The score coverage is the fraction of true shares inside their intervals. "
        f"It is close to {LEVEL_TEXT} if the attacker’s assumptions about the clients are "
        "correct.",
    ),
)
