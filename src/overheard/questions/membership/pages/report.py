"""The report's text on which records a client trained on."""

from dataclasses import dataclass
from typing import final

from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.sections import Term
from overheard.drawing.sentences import Statement, best_target_sentences
from overheard.findings.finding import Finding
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ThreatResult
from overheard.questions.membership.pages.membership_sentences import membership_sentences


@final
@dataclass(frozen=True)
class MembershipPages(QuestionPages):
    """How well members are distinguished from non-members."""

    name = "membership"
    plain_question = "Whether a given record, such as a patient's, is among the training data"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """State how often a member ranks above a non-member."""
        value = self.question.measure(row.score).format(row.value.mean)
        what = f"which records {whose} training data contain"
        pairs = f"correct in {value} pairs of a training record and another record"
        return Statement(what, f"identifies {what}, {pairs}", pairs)

    def intro(self) -> str:
        """Explain the pairs of a member and a non-member."""
        return (
            "For records: the attack is shown a training record and another one, and says "
            "which is which; a coin is correct in 50 of 100 such pairs."
        )

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Describe the rates at few false positives, and the target at highest risk."""
        attack_result = threat_result.attack_results[0]
        row = attack_result.headline_row
        return (
            *membership_sentences(attack_result),
            *best_target_sentences(threat_result, row, self.question.measure(row.score)),
        )

    def describe_claim(self, finding: Finding) -> str:
        """State how many records are claimed as members."""
        members = sum(score > 0 for score in finding.claimed)
        return f"{members} of {len(finding.claimed)} records claimed as members"

    def terms(self) -> tuple[Term, ...]:
        """Explain members, non-members and the ranking of pairs."""
        return (
            Term(
                "Members ranked above non-members",
                "The number of pairs, out of 100 pairs of a member and a non-member, in which "
                "the member has the higher score (score membership_auc). A member is a record "
                "that the client trained on; a non-member is a record that no client trained "
                "on. Guessing gives 50.",
            ),
        )
