"""The report's text, tables and figures on which user sent an update."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.sections import Section, Term
from overheard.drawing.sentences import Statement
from overheard.drawing.users import (
    INTERVALS_TERM,
    PAIRS_TERM,
    UNMEASURED_REASON,
    unmeasured_user_sentence,
    user_section,
)
from overheard.findings.audit import Audit
from overheard.findings.number_format import SPACE
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.questions.identity.pages.identity_figures import identity_figures
from overheard.questions.identity.pages.identity_sentences import identity_sentences
from overheard.questions.identity.pages.identity_tables import identity_tables


@final
@dataclass(frozen=True)
class IdentityPages(QuestionPages):
    """How well users are re-identified, beside uninformed guesses and the control run."""

    name = "identity"
    plain_question = "Which person, of those whose examples the attacker has, sent an update"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """State how often the first guess is correct."""
        value = self.question.measure(row.score).format(row.value.mean)
        return Statement(
            "which user sent an update",
            f"names the user who sent an update, correct on the first guess in {value} of "
            "cases",
            f"correct on the first guess in {value} of cases",
        )

    def intro(self) -> str:
        """Explain the share of correct first guesses."""
        return "For the user who sent an update: how often the attack's first guess is correct."

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Describe rankings, pairs, unknown users, the control and the gain over the paper."""
        return identity_sentences(threat_result)

    def unmeasured_sentence(self, threat_result: ThreatResult) -> str:
        """State that no known user took part."""
        return unmeasured_user_sentence(threat_result)

    def unmeasured_reason(self) -> str:
        """Give the reason: no known user took part."""
        return UNMEASURED_REASON

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Return the tables and figures."""
        return user_section(identity_tables(arm_results), identity_figures(arm_results))

    def terms(self) -> tuple[Term, ...]:
        """Explain precision, first guesses, pairs, unknown users and the control."""
        return _TERMS


_TERMS = (
    Term(
        "Mean average precision",
        "For each known user, all targets are ranked by how likely each is that user. Average "
        "precision is a mean over the user’s own targets: the share of the user’s targets "
        "among all targets ranked as high or higher. The figure is the mean over users (score "
        "mean_average_precision). Ties are broken at random. A random order reaches more than "
        "1 divided by the number of users. “Times chance” is the ratio to it; the ratio can "
        "grow with the number of users.",
    ),
    Term(
        "Correct on the first guess",
        "The share of targets whose true user has the highest score (score top1). Users with "
        "equal scores share a rank.",
    ),
    PAIRS_TERM,
    Term(
        f"Identified at 1{SPACE}% false positives",
        "The share of the known users’ targets that are named correctly and with stronger "
        f"evidence than all but 1{SPACE}% of the targets of users unknown to the attacker "
        "(score dir_at_1_percent).",
    ),
    Term(
        f"95{SPACE}% permutation range",
        "The range of the mean average precision if users are permuted at random among "
        "devices, each device with all that it sent. If the control lies outside this range, "
        "something other than their examples distinguishes the clients.",
    ),
    INTERVALS_TERM,
)
