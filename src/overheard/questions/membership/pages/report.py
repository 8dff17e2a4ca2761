"""The report's text on which records a client trained on."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import final

import numpy as np

from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.sections import Term
from overheard.drawing.sentences import Statement, best_target_sentences
from overheard.findings.finding import Finding
from overheard.findings.number_format import SPACE, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import AttackResult, ThreatResult
from overheard.questions.membership.measures import MEASURES, WITHIN_LABELS
from overheard.questions.membership.scorer import FALSE_POSITIVE_RATES
from overheard.questions.membership.statistics.record_rates import (
    RecordRates,
    estimate_record_rates,
)
from overheard.statistics.estimate import Estimate

ACCURACY = "membership_accuracy"


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
            *_strength_sentences(threat_result),
            *best_target_sentences(threat_result, row, self.question.measure(row.score)),
        )

    def describe_claim(self, finding: Finding) -> str:
        """State how many records are claimed as members."""
        members = sum(score > 0 for score in finding.claimed.numbers)
        return f"{members} of {len(finding.claimed.numbers)} records claimed as members"

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


def membership_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    """Describe the best attack at low false positive rates.

    Each rate has two intervals: over clients and runs, as everywhere in a report, and over
    records (`statistics.record_rates`).
    """
    rates = estimate_record_rates(attack_result.findings)
    return (
        *_sentences_within_labels(attack_result),
        *_true_positive_sentences(attack_result, rates),
        _accuracy_sentence(attack_result, rates),
    )


def _strength_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """State how far records could stand out, if an attack says so without the truth."""
    for attack_result in threat_result.attack_results:
        strengths = [
            one for finding in attack_result.findings for one in finding.claimed.strengths
        ]
        if strengths:
            break
    else:
        return ()
    deviations = np.quantile(strengths, (0.5, 0.9, 0.99))
    normal = NormalDist()
    found = [format_percent(normal.cdf(one - normal.inv_cdf(0.99))) for one in deviations]
    half, tenth, hundredth = (f"{one:.1f}" for one in deviations)
    return (
        f"Before any truth, {attack_result.headline_row.attack} states how far each record "
        f"could stand out: half of the records by at most {half} standard deviations, a tenth "
        f"by {tenth} or more, a hundredth by {hundredth} or more. At these values a member "
        f"would be found in {found[0]}, {found[1]} and {found[2]} of cases at 1{SPACE}% false "
        "positives. This is an upper envelope of this test at the broadcast, for updates that "
        "no defense shortens. How far the model moves in a round (learning rate times steps) "
        "usually decides, and other records are not safe from other attacks.",
    )


def _sentences_within_labels(attack_result: AttackResult) -> tuple[str, ...]:
    """State the rates among records of one label, where labels alone tell members."""
    auc, found = (
        attack_result.rows_by_score.get(name + WITHIN_LABELS)
        for name in ("membership_auc", "tpr_at_1_percent")
    )
    if auc is None:
        return ()
    pairs = MEASURES[auc.score].format(auc.value.mean)
    overall = MEASURES["membership_auc"].format(attack_result.headline_row.value.mean)
    share = (
        ""
        if found is None
        else f", and finds {format_percent(found.value.mean)} of members at 1{SPACE}% false "
        "positives with a threshold for each label"
    )
    return (
        "Members and non-members differ in their labels, which tells some apart without any "
        f"memory of a record. Among records of one label the attack is correct in {pairs} "
        f"pairs{share}. Over all records it is {overall}, labels included.",
    )


def _true_positive_sentences(
    attack_result: AttackResult, rates: RecordRates
) -> tuple[str, ...]:
    scored = [
        (rate, name) for rate, name in FALSE_POSITIVE_RATES if name in rates.true_positive_rates
    ]
    if not scored:
        return ()
    shares = [
        f"{format_percent(attack_result.rows_by_score[name].value.mean)} of members at "
        f"{_rate_text(rate)} false positives "
        f"(95{SPACE}% interval "
        f"{_intervals(attack_result, name, rates.true_positive_rates[name])}; "
        f"guessing {format_percent(attack_result.rows_by_score[name].best_uninformed)})"
        for rate, name in scored
    ]
    rate, name = scored[-1]
    # Runs with few canaries outside have no such rate.
    rated = [
        finding
        for finding in attack_result.findings
        if any(score.name == name for score in finding.scores)
    ]
    return (
        f"The attack finds {' and '.join(shares)}.",
        f"With {estimate_record_rates(rated).non_members:,} non-members, the 95{SPACE}% "
        f"interval of the {_rate_text(rate)} false positive rate is "
        f"{MEASURES[name].format_interval(rates.false_positive_rates[name])}.",
    )


def _accuracy_sentence(attack_result: AttackResult, rates: RecordRates) -> str:
    row = attack_result.rows_by_score[ACCURACY]
    return (
        "At a threshold fixed in advance, the attack classifies "
        f"{format_percent(row.value.mean)} of "
        f"the records correctly, averaged over members and non-members (95{SPACE}% interval "
        f"{_intervals(attack_result, ACCURACY, rates.accuracy)}; "
        f"guessing {format_percent(row.best_uninformed)}). "
        "Intervals "
        "over records treat the records of one client as independent, given its model."
    )


def _intervals(attack_result: AttackResult, name: str, exact: Estimate) -> str:
    """Format both intervals; a single claim has only the interval over records."""
    measure, row = MEASURES[name], attack_result.rows_by_score[name]
    over_records = f"{measure.format_interval(exact)} over records"
    if row.value.low is None:
        return over_records
    units = "clients" if row.seeds == 1 else "clients and runs"
    return f"{measure.format_interval(row.value)} over {units}, {over_records}"


def _rate_text(rate: float) -> str:
    return f"{100 * rate:g}{SPACE}%"
