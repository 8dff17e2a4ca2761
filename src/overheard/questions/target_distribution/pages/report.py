"""The report's text on the numbers to predict of each client."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.coverage import LEVEL_TEXT, coverage_sentences
from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.sections import Term
from overheard.drawing.sentences import Statement, best_target_sentences
from overheard.findings.finding import Finding
from overheard.findings.names import make_printable
from overheard.findings.number_format import format_number
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ThreatResult
from overheard.questions.target_distribution.measures import MEASURES


@final
@dataclass(frozen=True)
class TargetDistributionPages(QuestionPages):
    """How the numbers to predict are distributed among a client's examples."""

    name = "target_distribution"
    plain_question = "How high the numbers to predict are, such as the mean age of patients"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """State the error of the mean number."""
        value = self.question.measure(row.score).format(row.value.mean)
        what = f"the mean of the numbers that {whose} model predicts"
        return Statement(what, f"infers {what}, off by {value}", f"off by {value}")

    def guess_statement(self, value: str) -> str:
        """State the error of a guess."""
        return f"off by {value}"

    def intro(self) -> str:
        """Explain the headline score."""
        return (
            "For numbers to predict: by how many standard deviations of the attacker's own "
            "examples the claimed mean is wrong."
        )

    def unchecked_example(self, threat_result: ThreatResult, classes: Sequence[str]) -> str:
        """State the first claimed mean."""
        for finding in threat_result.unchecked_claims:
            attack = make_printable(threat_result.labels[finding.cell.attack].partition("(")[0])
            name = make_printable(classes[0]) if classes else "the number"
            mean = format_number(finding.claimed.numbers[0])
            return (
                f"For example, the attack {attack} states that the mean of “{name}” of "
                f"{make_printable(finding.target)} is {mean}."
            )
        return ""

    def describe_claim(self, finding: Finding) -> str:
        """State the claimed mean of the first number."""
        return f"mean {format_number(finding.claimed.numbers[0])}"

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Describe the target that is read best, and the intervals."""
        row = threat_result.attack_results[0].headline_row
        return (
            *best_target_sentences(threat_result, row, self.question.measure(row.score)),
            *coverage_sentences(
                threat_result, "target_coverage", MEASURES["target_coverage"], "number"
            ),
        )

    def terms(self) -> tuple[Term, ...]:
        """Explain the scores."""
        return (
            Term(
                MEASURES["target_mean_error"].title,
                "How far the claimed mean of a client's numbers is from the true one, in "
                "standard deviations of the attacker's own examples (score "
                "target_mean_error). Guessing claims the mean of these examples.",
            ),
            Term(
                MEASURES["pinball"].title,
                "How far the claimed quantiles (10, 50 and 90 %) are from the true ones, in "
                "the same unit; too low counts by the level of the quantile, too high by the "
                f"rest (score pinball). The intervals have a level of {LEVEL_TEXT}.",
            ),
        )
